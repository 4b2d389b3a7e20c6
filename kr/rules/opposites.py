"""Opposites and marks of negation: general vocabulary, English and Chinese first (SPEC 3.2)."""

from kr.rules.stopwords import phrases, word_set

_PAIRS = """
enable enabled activate activated allow allowed permit | disable disabled deactivate deny forbid forbidden disallow prohibit
sync synchronous | async asynchronous nonblocking
blocking | nonblocking
controlled | uncontrolled
auto automatic automatically automated | manual manually
static statically | dynamic dynamically
local locally | remote remotely global globally
public | private
internal | external
inbound incoming ingress | outbound outgoing egress
input | output
import | export
upload | download
read reader readonly | write writer writeonly
encode encoder encoding | decode decoder decoding
encrypt encryption | decrypt decryption
compress compression | decompress decompression uncompressed
serialize serialization marshal | deserialize deserialization unmarshal
normalize normalization | denormalize denormalization
start startup boot | stop shutdown halt
install installation | uninstall uninstallation
mount mounted | unmount unmounted
lock locked | unlock unlocked
load | unload
bind binding | unbind unbinding
attach attached | detach detached
connect connected | disconnect disconnected
show shown visible display | hide hidden invisible hiding
expand expanded expandable | collapse collapsed collapsible
open opened | close closed
ascending asc | descending desc
horizontal horizontally | vertical vertically
left | right
top | bottom
row | column
width | height
first | last
min minimum | max maximum
before | after
next | previous prev
prefix | suffix
prepend | append
forward | backward backwards reverse
head | tail
client clientside frontend | server serverside backend
parent | child children
ancestor | descendant
inner | outer
eager eagerly | lazy lazily
optimistic | pessimistic
mutable | immutable
stateful | stateless
physical physically | logical logically soft
hard | soft
shallow shallowly | deep deeply
strict strictly | loose loosely
implicit implicitly | explicit explicitly
relative | absolute
temporary transient ephemeral | permanent persistent
inclusive include included including | exclusive exclude excluded excluding
add insert create | remove delete drop destroy
push | pull
send sender sending | receive receiver receiving
publish publisher | subscribe subscriber
producer produce | consumer consume
request | response
increase increment | decrease decrement
upgrade | downgrade
upcast | downcast
upsample upsampling | downsample downsampling
upstream | downstream
commit | rollback
merge | split
shrink | grow
single | multiple multi
primary master leader | secondary replica slave follower
source | destination target
online | offline
light | dark
true | false
success successful succeed | failure failed fail
accept | reject
keep preserve retain | discard drop lose
lossless | lossy
signed | unsigned
bounded | unbounded
sorted ordered | unsorted unordered
uppercase | lowercase
positive | negative
production prod | development dev
hot | cold
weak | strong
little | big
sparse | dense
flat flattened | nested
optional optionally | required mandatory
启用 启动 激活 允许 | 禁用 停用 禁止 停止
开启 打开 展开 | 关闭 收起 折叠
显示 可见 | 隐藏 不可见
同步 | 异步
自动 | 手动
静态 | 动态
本地 局部 | 远程 全局
添加 新增 增加 插入 创建 | 删除 移除 销毁
上传 | 下载
导入 | 导出
编码 | 解码
加密 | 解密
压缩 | 解压
序列化 | 反序列化
升序 正序 | 降序 倒序
横向 水平 | 纵向 垂直
公有 公开 | 私有
客户端 前端 | 服务端 服务器端 后端
父级 父组件 父节点 父表 | 子级 子组件 子节点 子表
内连接 | 外连接
左连接 | 右连接
左侧 | 右侧
顶部 | 底部
悲观 | 乐观
物理 | 逻辑
单选 | 多选
单数据源 单表 单行 单列 单租户 单线程 单例 单个 | 多数据源 多表 多行 多列 多租户 多线程 多例 多个
响应式 | 非响应式
受控 | 非受控
可变 | 不可变
有状态 | 无状态
阻塞 | 非阻塞
正向 | 反向 逆向
锁定 加锁 | 解锁
安装 | 卸载
挂载 | 卸载
读取 只读 | 写入 只写
推送 | 拉取
发送 | 接收
生产者 | 消费者
输入 | 输出
请求 | 响应
显式 | 隐式
升级 | 降级
提交 | 回滚
包含 | 排除
永久 持久 | 临时 短暂
浅拷贝 | 深拷贝
急加载 | 懒加载 惰性加载 延迟加载
递增 | 递减
最大 | 最小
成功 | 失败
在线 | 离线
啟用 開啟 | 停用 關閉
顯示 | 隱藏
有効 | 無効
允许 | 避免 防止
全选 | 反选
同期 | 非同期
표시 | 숨기기
동기 | 비동기
활성화 | 비활성화
""".strip()

PARTICLE_VERBS = word_set(
    "sign log opt scale zoom fade turn switch slide roll check clock step spin tear power"
)
PARTICLES = {word: place for place, word in enumerate(("in", "out", "on", "off", "up", "down", "back"))}
"""Verbs whose particle makes the meaning: "sign in", "sign out", "sign up"."""

NEGATIONS = word_set(
    """
    no not never without non cannot cant dont doesnt didnt isnt arent wasnt wont shouldnt couldnt nor neither lacks lacking
    disable disables disabled disabling deactivate deactivates deactivated deactivating
    disallow disallows disallowed disallowing forbid forbids forbidding forbidden prohibit prohibits prohibited prohibiting
    ohne nicht kein keine sans pas sin não sem без не
    """
)
"""What stands in their scope is told as absent or switched off."""

EXCLUSIONS = word_set(
    """
    skip skips skipped skipping bypass bypasses bypassed bypassing omit omits omitted omitting ignore ignores ignored ignoring
    exclude excludes excluded excluding suppress suppresses suppressed suppressing except
    """
)
"""Weaker marks: they tell against a topic that has the very words in their scope, and nothing else."""

TRAILING = word_set("disable disabled deactivated forbidden prohibited disallowed skipped bypassed off")
"""Marks that may follow what they negate: "validation disabled in tests"."""

PHRASES = {
    ("turn", "off"): "disable",
    ("turned", "off"): "disabled",
    ("turning", "off"): "disabling",
    ("switch", "off"): "disable",
    ("switched", "off"): "disabled",
    ("switching", "off"): "disabling",
    ("opt", "out"): "disable",
    ("get", "rid"): "disable",
    ("w", "o"): "without",
    ("instead", "of"): "except",
    ("rather", "than"): "except",
}
"""Two words that are one mark."""

SYMPTOMS = word_set(
    """
    work works working effect found find reachable available supported recognized recognised defined possible longer
    firing triggered triggering responding loading showing updating updated rendering rendered resolved matching only
    just able enough
    """
)
"""What a complaint says after "not": "not working" is about the very topic."""

CJK_NEGATIONS = phrases(
    "不使用 不启用 不开启 不需要 不带 不含 不用 不要 不能 无需 无须 没有 禁用 禁止 停用 关闭 屏蔽 取消 未 没 非 无 不 "
    "關閉 無需 沒有 無 なしで なし しない せずに 없이"
)
CJK_EXCLUSIONS = phrases("绕过 跳过 忽略 排除 略过 繞過 跳過 而不是 而非")
CJK_NO_NEGATION = phrases(
    "不生效 不起作用 不工作 不显示 不更新 不触发 不一致 不同 不足 不仅 不断 不过 不良 不可变 无法 无效 无限 无障碍 无缝 无头 无线 "
    "无关 未来 未知 未找到 非常 并非 除非 是非 非受控 非阻塞 无状态 非同期 没反应 取消请求 取消订阅 关闭弹窗 关闭连接 无痛 不等于 "
    "不可见 无刷新 無限 無効"
)
"""Words that only look negated, complaints, and those whose opposite stands among the pairs."""

_UNRELATED = word_set(
    """
    dispatch discover discount distribute display default deliver decode design deploy delay debug deduplicate dedupe
    under union unit unique until unicode inform input inset install insert indent inline depend detail device derive
    """
)
_PREFIXES = (
    ("un", 3),
    ("non", 3),
    ("dis", 5),
    ("de", 6),
    ("mis", 5),
    ("in", 5),
    ("im", 5),
    ("ir", 6),
    ("anti", 4),
)


def _poles() -> dict[str, tuple[tuple[int, int], ...]]:
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for axis, line in enumerate(_PAIRS.splitlines()):
        for pole, side in zip((1, -1), line.split("|"), strict=True):
            for word in side.split():
                found[word] = (*found.get(word, ()), (axis, pole))
    return found


POLES = _poles()
"""For each word the axes of meaning it lies on, with its end of each: 1 or -1."""

CJK_POLES = phrases(" ".join(word for word in POLES if not word.isascii()))


def positive_of(word: str) -> str | None:
    """Return what ``word`` denies by a prefix or by ``-less`` (``uncontrolled``: ``controlled``), else None.

    The answer is a guess by form alone, to be held against the words of another topic.
    """
    if word in _UNRELATED:
        return None
    for prefix, least in _PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= least:
            return word[len(prefix) :]
    if word.endswith("less") and len(word) > 6:
        return word[:-4]
    return None
