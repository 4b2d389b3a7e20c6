"""Pairs of opposites in software topics, English and Chinese first (SPEC 3.2).

A line is an axis of meaning with its two ends. Topics that name different ends of one axis are different, whatever else
they share. Words of judgement (fast and slow, good and bad) are no axis: "slow queries" and "faster queries" ask the same.
"""

import re
from functools import cache

from kr.matching.han import pattern, simplified
from kr.matching.inflection import bases
from kr.matching.vocabulary import SHORT_FORMS

_ENGLISH = """
enable activate allow permit force trigger cause encourage enforce grant | disable deactivate deny forbid disallow prohibit prevent avoid block ban revoke suppress
sync synchronous synchronously | async asynchronous asynchronously nonblocking
blocking | nonblocking
controlled | uncontrolled
auto automatic automatically automated automate autocommit | manual manually
static statically | dynamic dynamically
static | animated
local locally | remote remotely global globally
public publicly | private privately
internal internally | external externally
interior | exterior
inbound incoming ingress | outbound outgoing egress
input | output
import importer | export exporter
upload uploader | download downloader
read reader readonly readable | write writer writeonly writable
encode encoder | decode decoder
encrypt encryption | decrypt decryption
compress compression | decompress decompression uncompressed
zip gzip | unzip gunzip
pack packing | unpack unpacking
wrap wrapper | unwrap
serialize serialization serializer marshal marshalling | deserialize deserialization deserializer unmarshal unmarshalling
normalize normalization | denormalize denormalization
escape escaping | unescape unescaping
start startup boot launch begin | stop shutdown halt terminate end
open | close
begin beginning | end ending
start | finish
opening | closing
pause suspend | resume unpause
install installation | uninstall uninstallation
mount mounted onmounted | unmount unmounted onunmounted
lock | unlock
load | unload
bind binding | unbind unbinding
attach | detach
connect connection | disconnect disconnection
join | leave
enter entering | leave leaving exit
link | unlink
pin | unpin
mute | unmute
follow | unfollow
subscribe | unsubscribe
register registration | unregister deregister unregistration
check | uncheck
select | deselect unselect
freeze | unfreeze thaw
archive | unarchive
stage | unstage
show shown visible display reveal | hide hidden invisible conceal
expand expandable expansion | collapse collapsible
minimize | maximize
ascending asc ascend | descending desc descend
horizontal horizontally | vertical vertically
landscape | portrait
left leftmost | right rightmost
top topmost | bottom bottommost
upper | lower
up upward upwards | down downward downwards
above | below under beneath underneath
front | back rear
inside within | outside
within | between across
row | column
width wide | height
wide wider | narrow narrower
thick | thin
tall | short
long longer longest | short shorter shortest
large larger largest big huge | small smaller smallest tiny
first | last
initial | final
early earlier | late later
oldest older old | newest newer new
latest newest | oldest earliest
high higher highest | low lower lowest
max maximum maximal maximize | min minimum minimal minimize
before | after
pre | post
next following | previous prev preceding
prefix | suffix postfix
prepend | append
forward forwards | backward backwards reverse
head | tail
header | footer
client clientside frontend | server serverside backend
parent | child children
ancestor | descendant
inner | outer
eager eagerly | lazy lazily
optimistic | pessimistic
mutable | immutable
stateful | stateless
physical physically | logical logically soft
physical | virtual
real | fake mock
hard | soft
shallow shallowly | deep deeply
strict strictly | loose loosely lenient
implicit implicitly | explicit explicitly
relative | absolute
abstract | concrete
temporary transient ephemeral | permanent persistent durable
volatile | persistent
inclusive include | exclusive exclude
including | excluding
add insert create append | remove delete drop destroy
attach add | detach remove
construct constructor | destruct destructor
push | pull
pop | push
enqueue | dequeue
acquire | release
allocate allocation | deallocate deallocation free
send sender | receive receiver
publish publisher | subscribe subscriber
publish | unpublish
producer produce | consumer consume
request | response
increase increment raise grow | decrease decrement reduce lower shrink
accelerate | decelerate
zoomin | zoomout
upgrade | downgrade
promote | demote
upcast | downcast
upsample upsampling | downsample downsampling
upstream | downstream
uplink | downlink
commit | rollback
apply | revert undo
undo | redo
merge | split
join concat concatenate combine | split separate
grow | shrink
pad | trim
single one | multiple multi many several
singular | plural
primary master leader | secondary replica slave follower
source | destination target sink
origin | target
online | offline
light | dark
bright | dark
true | false
positive | negative
odd | even
equal | unequal
success successful successfully succeed pass | failure failed fail failing
accept | reject refuse decline
approve | reject
keep preserve retain maintain | discard drop lose
save | discard
lossless | lossy
signed | unsigned
bounded | unbounded
sorted ordered | unsorted unordered
typed | untyped
uppercase | lowercase
production prod | development dev
production | staging
debug | release
hot warm | cold
weak weakly | strong strongly
little | big
sparse | dense
flat flattened flatten | nested nest
optional optionally | required mandatory
odd | even
full | empty
full | partial incremental
complete | partial
entire whole | part partial
all | none
any | none
always | never
most | least
exact exactly precise precisely | least most approximate approximately roughly fuzzy
more | less fewer
same identical | different distinct
equal same | different
similar | different
symmetric | asymmetric
homogeneous | heterogeneous
unique | duplicate
common | rare
parallel concurrent concurrently | sequential sequentially serial serially
simultaneous | sequential
centralized central | decentralized distributed
monolith monolithic | microservice
unicast | broadcast multicast
simplex | duplex
half | full
direct directly | indirect indirectly
active | passive inactive
idle | busy
busy | free
healthy | unhealthy
alive live | dead
fresh | stale
raw | processed parsed
plain plaintext | encrypted
plain | rich
clean | dirty
known | unknown
trusted | untrusted
valid | invalid
safe | unsafe
secure | insecure
authenticated | anonymous unauthenticated
anonymous | named
default | custom
builtin native | custom
managed | unmanaged
compile compiled | interpreted
compiletime | runtime
compile | decompile
buildtime | runtime
buffered | unbuffered
cached | uncached
blacklist blocklist denylist | whitelist allowlist
numerator | denominator
dividend | divisor
add addition sum | subtract subtraction minus
multiply multiplication | divide division
plus | minus
rounddown floor | roundup ceil ceiling
union | intersection
superset | subset
superclass base | subclass derived
superuser | unprivileged
supertype | subtype
covariant | contravariant
predecessor | successor
leading | trailing
lead | lag
rising | falling
master | slave
north | south
east | west
buy | sell
credit | debit
deposit | withdraw withdrawal
income | expense
sender | recipient
greedy | nongreedy lazy
inline | external block
clockwise | counterclockwise anticlockwise
portrait | landscape
foreground | background
focus | blur
hover | leave
keydown keypress | keyup
mousedown | mouseup
mouseenter mouseover | mouseleave mouseout
login | logout
get getting getter | set setter
stdin | stdout
stdout | stderr
lower | raise
train training | inference test
fit | predict
encoder | decoder
generator | discriminator
overfit overfitting | underfit underfitting
overflow | underflow
precision | recall
supervised | unsupervised
precondition | postcondition
preprocess preprocessing | postprocess postprocessing
prepare setup | teardown cleanup
ssr | csr
monorepo | polyrepo
stash | unstash
ours | theirs
http | https
unicode | ascii
utc | local
tls | plaintext
spawn | kill
inherit | override
opaque | transparent
convex | concave
inward | outward
inflow | outflow
""".strip()

_CHINESE = """
启用 启动 激活 允许 触发 强制 | 禁用 停用 禁止 停止 避免 防止 阻止
开启 打开 展开 | 关闭 收起 折叠
显示 可见 | 隐藏 不可见
同步 | 异步
自动 | 手动
静态 | 动态
本地 局部 | 远程 全局
添加 新增 增加 插入 创建 | 删除 移除 销毁 去除
增加 增大 提高 提升 | 减少 减小 降低
上传 | 下载
导入 | 导出
编码 | 解码
加密 | 解密
压缩 | 解压
序列化 | 反序列化
升序 正序 | 降序 倒序
横向 水平 横屏 | 纵向 垂直 竖屏
公有 公开 | 私有
客户端 前端 | 服务端 服务器端 后端
父级 父组件 父节点 父表 | 子级 子组件 子节点 子表
祖先 | 后代
内连接 | 外连接
左连接 | 右连接
左侧 左边 | 右侧 右边
向左 | 向右
向上 上移 | 向下 下移
顶部 | 底部
上拉 | 下拉
上方 | 下方
内部 | 外部
里面 | 外面
之前 | 之后
进入 | 离开 退出
首次 第一个 第一次 首个 | 最后一个 最后一次 末尾
上一页 上一个 上一步 | 下一页 下一个 下一步
登录 | 登出 注销 退出登录
连接 | 断开
加载 | 卸载
绑定 | 解绑
订阅 | 取消订阅
注册 | 注销
放大 | 缩小
展开 | 收起
固定 | 取消固定
悲观 | 乐观
物理 | 逻辑
单选 | 多选
单数据源 单表 单行 单列 单租户 单线程 单例 单个 单文件 单页 | 多数据源 多表 多行 多列 多租户 多线程 多例 多个 多文件 多页
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
撤销 | 重做
包含 | 排除
永久 持久 | 临时 短暂
浅拷贝 | 深拷贝
浅色 亮色 | 深色 暗色
急加载 | 懒加载 惰性加载 延迟加载
按需 | 全量
全量 | 增量
递增 | 递减
最大 | 最小
最新 | 最旧 最早
成功 | 失败
在线 | 离线
允许 | 禁止
全选 | 反选
相同 | 不同
必填 | 选填 可选
并行 并发 | 串行 顺序执行
单向 | 双向
有序 | 无序
有限 | 无限
合并 | 拆分
主库 | 从库
主线程 | 子线程
同期 | 非同期
有効 有効化 | 無効 無効化
追加 | 削除
昇順 | 降順
開く | 閉じる
表示 | 非表示
表示 | 隠す
표시 | 숨기기
동기 | 비동기
활성화 | 비활성화
추가 | 삭제
오름차순 | 내림차순
""".strip()


Poles = dict[str, tuple[tuple[int, int], ...]]


def _read(text: str, start: int = 0) -> Poles:
    found: dict[str, list[tuple[int, int]]] = {}
    for axis, line in enumerate(dict.fromkeys(text.splitlines()), start):
        one, other = line.split("|")
        for word in one.split():
            found.setdefault(word, []).append((axis, 1))
        for word in other.split():
            found.setdefault(word, []).append((axis, -1))
    return {word: tuple(ends) for word, ends in found.items()}


POLES = _read(_ENGLISH)
"""For each word the axes of meaning it lies on, with its end of each: 1 or -1. Axes are numbers."""


def poles_of(word: str) -> tuple[tuple[int, int], ...]:
    """Return the axes and ends of an English word in any of its forms."""
    for base in bases(word):
        if base in POLES:
            return POLES[base]
    return POLES.get(SHORT_FORMS.get(word, ""), ())


def poles_in(run: str) -> list[tuple[int, int, str]]:
    """Return the axes and ends that a run of simplified Chinese, of Japanese or Korean names, each with its word."""
    poles = cjk_poles()
    return [(axis, pole, word) for word in _cjk_pattern().findall(run) for axis, pole in poles[word]]


@cache
def cjk_poles() -> Poles:
    return _read(simplified(_CHINESE), start=1000)


@cache
def _cjk_pattern() -> re.Pattern[str]:
    return pattern(*sorted(cjk_poles(), key=len, reverse=True))
