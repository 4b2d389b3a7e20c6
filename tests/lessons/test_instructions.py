"""A lesson never says the opposite of what its author said, and never loses what it speaks of."""

import pytest

from kr.lessons.columns import columns
from kr.lessons.distill.distill import distill
from kr.lessons.distill.wording import fit

_ORDERS = (
    "Prefetch related rows with select_related in OrderViewSet",
    "Warm up the CacheManager with preload()",
    "不建议使用 fastjson 1.x，存在反序列化漏洞，升级到 fastjson2 2.0.40 以上",
    "升级 fastjson 到 2.0.40 后通过",
    "Downgrade protobuf to 3.20.3 in requirements.txt",
    "Seed the orders table in conftest.py",
    "Flush the EntityManager in OrderService.save()",
    "Build the image with --platform linux/amd64",
    "Decode the JWT with jwt.decode()",
    "Invoke super.onCreate() first",
    "Poll /health until the ShopApi answers",
    "Reject orders without a customerId",
    "Strip the BOM in CsvReader",
    "Sync package-lock.json with npm install",
    "Skip rows without an sku in ImportJob",
    "Tune maximumPoolSize of HikariCP",
    "Ignore node_modules in .dockerignore",
    "Derive totalPrice in OrderDto",
    "把 TokenFilter 放进 SecurityFilterChain",
    "将 SimpleDateFormat 换成 DateTimeFormatter",
    "给 orders.user_id 建立索引",
    "开启 spring.jpa.open-in-view=false",
    "返回 OrderDTO，而不是 OrderEntity",
    "缩小 @Transactional 范围到 OrderService.pay",
    "The retry loop in fetchOrders hammers the API",
    "No error should be raised by parseRows() when the list is empty",
    "There is no need to call close() on RestTemplate",
)


@pytest.mark.parametrize("order", _ORDERS)
def test_what_the_author_said_stands(order: str) -> None:
    assert distill(order) == order
    assert distill("", order) == order
    assert distill("the page is broken", order) == order


@pytest.mark.parametrize(
    ("fix", "expected"),
    [
        ("Fix: pass timeout: 5000 to axios.create", "pass timeout: 5000 to axios.create"),
        ("建议：将 equals 改为 compareTo", "将 equals 改为 compareTo"),
        ("Hint: set KR_TOKEN before kr serve", "set KR_TOKEN before kr serve"),
        ("**Suggestion:** await sendMail() in OrderJob", "await sendMail() in OrderJob"),
        ("修复建议：使用 #{id} 绑定参数", "使用 #{id} 绑定参数"),
        ("Recommendation - use `Decimal` for prices", "use `Decimal` for prices"),
        ("Solution:\nset KR_TOKEN before kr serve", "set KR_TOKEN before kr serve"),
    ],
)
def test_a_label_takes_no_remedy_away(fix: str, expected: str) -> None:
    assert distill("OrderService.pay loses requests", fix) == expected


@pytest.mark.parametrize(
    "nothing",
    ["N/A", "n/a.", "TBD", "todo", "TODO: fix", "none", "None.", "null", "无", "暂无", "暂无。", "待定", "见上", "见上文", "x", "-", "?", "修", "see above",
     "unknown", "fix it", "同上"],
)  # fmt: skip
def test_a_placeholder_is_no_remedy(nothing: str) -> None:
    assert distill("UserDao.find must bind :id", nothing) == "UserDao.find must bind :id"
    assert distill(nothing) is None


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        ("RedisTemplate 未设置序列化器导致乱码", "RedisTemplate 需要设置序列化器，否则会导致乱码"),
        (
            "UserController.update 未校验 userId 的归属，存在越权风险",
            "UserController.update 需要校验 userId 的归属，否则存在越权风险",
        ),
        (
            "接口 /api/order/list 未做分页，数据量大时导致 OOM",
            "接口 /api/order/list 需要做分页，否则数据量大时会导致 OOM",
        ),
        (
            "FlywayException: Validate failed: Migrations have failed validation. Checksum mismatch for version 3",
            "FlywayException: Validate failed: Migrations have failed validation. Checksum mismatch for version 3",
        ),
        (
            'The container name "/db" is already in use. You have to remove (or rename) that container.',
            'Remove (or rename) that container (The container name "/db" is already in use)',
        ),
        ("循环内调用 mapper.selectById", "避免在循环内调用 mapper.selectById"),
        (
            "ArrayIndexOutOfBoundsException: Index 3 out of bounds for length 3 in CsvReader.read",
            "Check the length before indexing: Index 3 out of bounds for length 3 in CsvReader.read",
        ),
        ("InsufficientStockException: sku A-17 has 0 left", "InsufficientStockException: sku A-17 has 0 left"),
        ("Login fails when the e-mail has a plus sign", "Login fails when the e-mail has a plus sign"),
        ("OrderImport 导入失败：文件含空行", "OrderImport 导入失败：文件含空行"),
    ],
)  # fmt: skip
def test_a_complaint_becomes_an_instruction(complaint: str, expected: str) -> None:
    assert distill(complaint) == expected


@pytest.mark.parametrize(
    "trivial",
    [
        "Review exceeded 10 rounds",
        "系统异常，请联系管理员",
        "Index 3 out of bounds for length 3",
        "Internal Server Error, please contact support",
        "服务器内部错误，请稍后重试",
        "Round 10 ended without approval",
        "审查超过最大轮次",
    ],
)
def test_what_names_nothing_is_no_lesson(trivial: str) -> None:
    assert distill(trivial) is None


_MAVEN = (
    "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.11.0:compile (default-compile) on"
    " project shop: Fatal error compiling: error: release version 21 not supported -> [Help 1]"
)
_DOCKER = (
    "docker: Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Head"
    ' "http://%2Fvar%2Frun%2Fdocker.sock/_ping": dial unix /var/run/docker.sock: connect: permission denied.'
)
_KUBECTL = (
    'error: error validating "deploy.yaml": error validating data: ValidationError(Deployment.spec.template.spec.containers'
    '[0]): unknown field "imagePullPolcy" in io.k8s.api.core.v1.Container; if you choose to ignore these errors, turn'
    " validation off with --validate=false"
)
_PIP = """\
ERROR: Cannot install -r requirements.txt (line 3) and urllib3==2.0.4 because these package versions have conflicting dependencies.

The conflict is caused by:
    The user requested urllib3==2.0.4
    requests 2.25.0 depends on urllib3<1.27 and >=1.21.1

To fix this you could try to:
1. loosen the range of package versions you've specified
2. remove package versions to allow pip attempt to solve the dependency conflict

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/
"""
_NUMPY = """\
A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.0.0 as it may crash. To support both 1.x and 2.x
versions of NumPy, modules must be compiled with NumPy 2.0.
Some module may need to rebuild instead e.g. with 'pybind11>=2.12'.

If you are a user of the module, the easiest solution will be to
downgrade to 'numpy<2' or try to upgrade the affected module.
"""
_PRISMA = """\
Invalid `prisma.user.findMany()` invocation in
/app/src/users.ts:14:32

  11 const users =
→ 14 await prisma.user.findMany(
The table `public.User` does not exist in the current database.
    at Cr.handleRequestError (/app/node_modules/@prisma/client/runtime/library.js:122:7420)
"""
_GRADLE = """\
FAILURE: Build failed with an exception.

* What went wrong:
Could not determine the dependencies of task ':app:compileDebugJavaWithJavac'.
> SDK location not found. Define a valid SDK location with an ANDROID_HOME environment variable or by setting the sdk.dir path in your project's local properties file at '/home/ci/shop/local.properties'.

* Try:
> Run with --stacktrace option to get the stack trace.
> Run with --info or --debug option to get more log output.

* Get more help at https://help.gradle.org
BUILD FAILED in 2s
"""
_GRADLE_TESTS = """\
FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':test'.
> There were failing tests. See the report at: file:///home/ci/shop/build/reports/tests/test/index.html

OrderServiceTest > cancel() keeps the refund FAILED
    org.opentest4j.AssertionFailedError: expected: <REFUNDED> but was: <OPEN>
        at com.acme.OrderServiceTest.cancelKeepsRefund(OrderServiceTest.java:31)
"""
_VITE = '[vite] Internal server error: Failed to resolve import "@/stores/cart" from "src/App.vue". Does the file exist?'
_PUSH = """\
To github.com:acme/shop.git
 ! [rejected]        main -> main (fetch first)
error: failed to push some refs to 'github.com:acme/shop.git'
hint: Updates were rejected because the remote contains work that you do not
hint: have locally. This is usually caused by another repository pushing to
hint: the same ref. If you want to integrate the remote changes, use
hint: 'git pull' before pushing again.
"""
_JUNIT = """\
org.opentest4j.AssertionFailedError: expected: <200> but was: <404>
\tat org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)
\tat com.acme.OrderApiTest.returnsOrder(OrderApiTest.java:31)
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (_MAVEN, ["release version 21", "not supported"]),
        (_DOCKER, ["docker.sock", "permission denied"]),
        (_KUBECTL, ["field", "imagePullPolcy"]),
        (_PIP, ["urllib3"]),
        (_NUMPY, ["NumPy", "2.0"]),
        (_PRISMA, ["public.User", "migration"]),
        (_GRADLE, ["SDK location", "ANDROID_HOME"]),
        (_GRADLE_TESTS, ["REFUNDED", "OrderServiceTest"]),
        (_VITE, ["@/stores/cart", "resolve"]),
        (_PUSH, ["git pull"]),
        (_JUNIT, ["OrderApiTest.returnsOrder", "200"]),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            ["Use 'max_completion_tokens' instead of", "'max_tokens'"],
        ),
        ("ERROR 1045 (28000): Access denied for user 'app'@'10.0.0.5' (using password: YES)", ["'app'"]),
        ("panic at 2026-02-07 10:11:12 in OrderWorker: must lock mu", ["OrderWorker"]),
    ],
)
def test_what_names_something_is_kept(text: str, says: list[str]) -> None:
    summary = distill(text)
    assert summary is not None
    for part in says:
        assert part in summary, summary
    for gone in ("[vite]", " at in ", "See the report", "/home/", "[Help"):
        assert gone not in summary, summary
    assert columns(summary) <= 160


@pytest.mark.parametrize(
    ("text", "gone", "kept"),
    [
        (r"Load \\build01\share\agents\shop\src\config.ts with loadConfig()", "build01", "src/config.ts"),
        ("Run C:/Program Files/nodejs/node.exe with --no-deprecation", "Program", "node.exe"),
        (
            r"Run C:\Program Files (x86)\dotnet\dotnet.exe restore first",
            "Program",
            "dotnet.exe restore first",
        ),
        ("OrderWorker must stop at 2026-02-07 10:11:12", " at", "OrderWorker must stop"),
    ],
)
def test_machines_leave_nothing(text: str, gone: str, kept: str) -> None:
    summary = distill(text)
    assert summary is not None
    assert gone not in summary
    assert kept in summary


def test_a_huge_error_costs_little() -> None:
    import time

    began = time.process_time()
    assert (
        distill("noise line\n" * 200_000 + "KeyError: 'URL'") == "Provide the key URL, or read it with .get()"
    )
    assert time.process_time() - began < 5


_DESCRIBED = (
    "Users can read any tenant's invoices by changing tenantId",
    "We do log the password in AuthFilter.doFilter()",
    "One could inject SQL through the name parameter of findByName()",
    "We will leak file handles in FileStore.open() when parse() throws",
    "Attackers can delete other users' orders through DELETE /orders/{id}",
    "Anyone can download invoices from /api/invoices/{id}",
    "You can upload a .php file to AvatarController",
    "You might lose the cart when sessionStorage is cleared",
    "One may drop the orders table with the name parameter of findByName()",
    "Clients could send a negative amount to PayService.pay()",
    "The author will break PaymentGateway by renaming charge()",
    "We can overwrite other tenants' files in UploadService",
    "You could read the token with the file parameter of DownloadController",
    "Could it log the password in AuthFilter?",
    "The user can set role=admin in PUT /me",
    "You will get a StackOverflowError in TreeNode.toJson()",
    "They disable CSRF in SecurityConfig",
    "You can avoid the LoginGuard to read any invoice",
    "One can use the resetToken to delete accounts",
    "Users may skip the PaymentStep of CheckoutFlow",
)
_REJECTED = (
    "One might use lodash.cloneDeep here but it drops prototypes",
    "You could set retries=0 to hide this, but it masks errors",
    "The author may set CORS to *, however this is a security hole",
    "You can use any() here, but that hides type errors",
    "We could disable the ESLint rule no-floating-promises but that only hides the bug",
    "You might want to enable spring.jpa.open-in-view but it keeps connections open",
    "One could use eval(), however it runs anything",
    "You could use dangerouslySetInnerHTML, but this opens XSS",
    "I thought we should use Promise.all here but that is wrong: it fails fast",
    "You could catch Exception here, although it swallows OutOfMemoryError",
    "It would be tempting to set strict=false, but that hides errors",
    "I considered using setTimeout here, however it is flaky",
    "You can use synchronized instead, but it blocks the EventLoop",
    "We could raise maxPoolSize to fix this, though that only delays the leak",
    "应该用 Promise.all 的想法是错的，它会快速失败",
    "虽然可以设置 @SuppressWarnings 来消除告警，但不应该这样做",
    "可以加 @SuppressWarnings，但这会掩盖问题",
    "你可以用 eval，不过有安全风险",
    "使用 setTimeout 的做法是错的",
    "也许可以把 timeout 设置为 0，然而请求会一直挂起",
)


@pytest.mark.parametrize("said", _DESCRIBED)
def test_a_description_is_no_command(said: str) -> None:
    assert distill(said) == said
    assert distill(f"{said}. Check ownership with @PreAuthorize.") == "Check ownership with @PreAuthorize"
    assert (distill("x", said) or said) == said


@pytest.mark.parametrize("said", _REJECTED)
def test_a_rejected_proposal_is_no_remedy(said: str) -> None:
    assert (
        distill(f"{said}. Use structuredClone in UserDto.copy().") == "Use structuredClone in UserDto.copy()"
    )
    for alone in (distill(said), distill("x", said)):
        assert alone == said


@pytest.mark.parametrize(
    "fix",
    [
        "Use 2**16 and 2**32 as the limits of RateLimiter",
        "Set include to src/**/*.ts and test/**/*.ts in tsconfig.json",
        "Define __all__ in package/__init__.py and export Client",
        "Call merge(**a,**b) instead of a.update(b)",
        "Use `__dirname` with path.join(__dirname, 'x')",
        "Use **kwargs and **options in build()",
        "Use user?.name ?? 'guest' instead of user && user.name",
        "Use arr[0] ?? [] and data?.items ?? {}",
        "Use cond ? [a] : [b] in Menu.vue",
    ],
)
def test_code_is_neither_emphasis_nor_an_end(fix: str) -> None:
    assert distill("x", fix) == fix


def test_emphasis_goes() -> None:
    assert distill("x", "**Use** `a**b` and __never ever__ eval()") == "Use `a**b` and never ever eval()"
    assert distill("x", "请**必须**使用 `__init__`") == "请必须使用 `__init__`"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            (
                "TypeError: BaseEventLoop.create_connection() got an unexpected keyword argument 'proxies'\n"
                "openai 1.52.0 is incompatible with httpx 0.28; pin httpx<0.28 or upgrade openai to >=1.55.3"
            ),
            "pin httpx<0.28 or upgrade openai to >=1.55.3",
        ),
        (
            (
                "TypeError: Cannot read properties of undefined (reading 'getState')\n    at Object.<anonymous> (/w/src/cart.spec.ts:22:19)\n"
                "The zustand store must be created with createStore() from 'zustand/vanilla' when used outside React."
            ),
            "must be created with createStore()",
        ),
        (
            (
                'NullPointerException: Cannot invoke "User.getName()" because "user" is null\n'
                "Return Optional<User> from UserService.find and use orElseThrow."
            ),
            "Return Optional<User> from UserService.find",
        ),
        (
            (
                "Received unregistered task of type 'billing.tasks.send_invoice'.\n"
                "Did you remember to import the module containing this task?\nKeyError: 'billing.tasks.send_invoice'"
            ),
            "Import the module containing this task (KeyError: 'billing.tasks.send_invoice')",
        ),
        (
            (
                "fatal: detected dubious ownership in repository at '/w'\nTo add an exception for this directory, call:\n\n"
                "\tgit config --global --add safe.directory /w"
            ),
            "Run git config --global --add safe.directory",
        ),
        (
            "error: RPC failed; HTTP 413. To push it, call:\n    git config http.postBuffer 524288000",
            "Run git config http.postBuffer 524288000 (RPC failed; HTTP 413)",
        ),
        (
            (
                "InvalidRequestError: Can't operate on closed transaction inside context manager.  "
                "Please complete the context manager before emitting further commands."
            ),
            "Complete the context manager before emitting further commands",
        ),
        (
            (
                "InvalidRequestError: This Session's transaction has been rolled back due to a previous exception during flush. "
                "To begin a new transaction with this Session, first issue Session.rollback()."
            ),
            "first issue Session.rollback()",
        ),
        (
            "npm ERR! Fix the upstream dependency conflict, or retry\nnpm ERR! this command with --force or --legacy-peer-deps",
            "or retry this command with --force or --legacy-peer-deps",
        ),
    ],
)
def test_a_remedy_that_stands_there_wins(error: str, expected: str) -> None:
    assert expected in (distill(error) or "")


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        (
            "BigDecimal 用 equals 比较金额是错误的。请改用 compareTo()",
            "请改用 compareTo()（BigDecimal 用 equals 比较金额是错误的）",
        ),
        ("v-for 没有设置 key。需要绑定唯一的 id", "需要绑定唯一的 id（v-for 没有设置 key）"),
        ("缺少 @Valid 注解，DTO 的校验不会执行", "需要 @Valid 注解，否则 DTO 的校验不会执行"),
        ("缺少 CSRF token 校验，攻击者可以伪造请求", "需要 CSRF token 校验，否则攻击者可以伪造请求"),
        ("没有对 userId 做空值判断，会抛 NPE", "需要对 userId 做空值判断，否则会抛 NPE"),
        (
            "没有为 el-form-item 设置 prop 属性，表单校验不生效",
            "需要为 el-form-item 设置 prop 属性，否则表单校验不生效",
        ),
        (
            "el-table 未设置 row-key，开启 reserve-selection 后勾选状态会丢失",
            "el-table 需要设置 row-key，否则开启 reserve-selection 后勾选状态会丢失",
        ),
        ("缺少测试，OrderService.pay 的退款分支", "需要测试，OrderService.pay 的退款分支"),
        ("缺少 @Valid 注解，请在 UserDto 上补充", "缺少 @Valid 注解，请在 UserDto 上补充"),
        ("ValueError: Missing required argument: region_name", "Pass region_name: required"),
        ("Missing required environment variable STRIPE_SECRET_KEY", "Set STRIPE_SECRET_KEY: required"),
        (
            '{"message":"Missing required header: X-Tenant-Id","path":"/api/v1/orders"}',
            "Send the header X-Tenant-Id to /api/v1/orders: required",
        ),
        (
            '{"error":{"message":"Missing required parameter: \'messages[0].content\'.","param":"messages[0].content"}}',
            "Send messages[0].content: required",
        ),
    ],
)
def test_what_is_missing_is_asked_for(complaint: str, expected: str) -> None:
    assert distill(complaint) == expected


@pytest.mark.parametrize(
    ("fix", "expected"),
    [
        (
            "1. Remove the @Autowired field\n2. Inject OrderRepo through the constructor\n3. Mark the field final",
            "Remove the @Autowired field; inject OrderRepo through the constructor; mark the field final",
        ),
        (
            "- use `async with session.begin()`\n- drop session.commit()",
            "use `async with session.begin()`; drop session.commit()",
        ),
    ],
)
def test_a_list_stays_one(fix: str, expected: str) -> None:
    assert distill("x", fix) == expected


def test_a_cut_keeps_the_act() -> None:
    fix = (
        "Instead of increasing the timeout, which only hides the race in the useOrders hook and makes the whole suite slower for"
        " everybody, wait for the request with page.waitForResponse('/api/orders') before asserting on the table"
    )
    assert (distill("x", fix) or "").startswith("Wait for the request with page.waitForResponse")
    field = "All model fields of SettingsModel require a type annotation; if `retries` is not meant to be a field, annotate it as ClassVar"
    assert fit(field, 106) == "All model fields of SettingsModel require a type annotation"
