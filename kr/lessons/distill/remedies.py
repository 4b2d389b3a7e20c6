"""What to do about errors whose wording is fixed by a language, a runtime or a tool: general rules, first match wins.

Each row is a regular expression over the one-line complaint and the advice it gives. ``N`` is a name, quoted
or not; ``Q`` one that is quoted or looks like a name.
"""

import re
from functools import cache
from typing import NamedTuple

_N = r"['\"`‘“<]?([\w$@.:/#*+^~%\[\]()-]*[\w$)\]*])['\"`’”>]?"

# As a word of a sentence may be a name in a place of fixed wording only, elsewhere it has to look like one.
_Q = r"(?=['\"`‘“<]|\S*[\w$@][._/@:#-][\w$]|[@$#.-]|\S*[a-z][A-Z]|[A-Z]|\S*\d)" + _N

# Where a number is the status of an answer, not a count or a test's name.
_S = r"(?:^|\b(?:HTTP(?:/[\d.]+)?|[Ss]tatus|[Cc]ode|[Rr]eturned|[Aa]nswered|[Gg]ot|[Ee]rror|[Rr]esponse|with)[\"']?:? ?(?:(?:code|status)[\"']?:? ?)?)\b"

_PLACES = {"N": _N, "Q": _Q, "S": _S}

_ROWS: tuple[tuple[str, str], ...] = (
    # Whatever says so itself
    (r"(?:\w+: )?N (?:has been|was|is|were) (?:now )?moved (?:in)?to (?:the )?N(?: (?:package|module|namespace))?.*", r"Import \1 from \2: it was moved"),
    (r"(?:\w+: )?N (?:has been|was|is|were) (?:now )?renamed (?:in)?to N.*", r"Use \2 instead of \1: it was renamed"),
    (r"(.+?)[.;,]? (?:Did|did) you mean:? (?:to use )?(.{2,60}?)\?.*", r"Use \2: \1"),
    (r"N (?:is|has been|was|are) deprecated(?: (?:since|in|from) ([\w. ]+?))?[,;.]?(?: and [^.;]*)?[,;.]?\s*(?:please )?(?:use|replaced by|replace it with|in favou?r of) (.+)", r"Use \3 instead of \1 (deprecated)"),
    (r"N is deprecated.*", r"Replace \1: it is deprecated"),
    # Python
    (r"(\S+ \S+) requires (.+?), but you have (.+?) which is incompatible.*", r"Pin \2: \1 does not work with \3"),
    (r".*Target database is not up to date.*", r"Run alembic upgrade head before a new revision: the database is not up to date"),
    (r".*There is no current event loop in thread.*", r"Create the loop with asyncio.run() or new_event_loop(): a worker thread has none"),
    (r".*externally[- ]managed[- ]environment.*", r"Install into a virtual environment (python -m venv): the system's Python is externally managed"),
    (r".*start a new process before the current process has finished its bootstrapping.*", r"Guard the entry point with if __name__ == '__main__' (multiprocessing spawns the module again)"),
    (r"hook (.+?): files were modified by this hook", r"Run \1 before committing: its pre-commit hook modifies files"),
    (r"Item \"None\" of \"?(.+?)\"? has no attribute N(.*)", r"Check for None before .\2: \1 may be None\3"),
    (r"Argument (\S+) to N(?: of \"?\w+\"?)? has incompatible type \"?(.+?)\"?; expected \"?(.+?)\"?( \([\w-]+\))?", r"Pass \4, not \3, as argument \1 of \2\5"),
    (r"Incompatible (?:default for argument|types in assignment).*?\((?:expression|default) has type \"?(.+?)\"?, (?:variable|argument|base class \"\w+\") has type \"?(.+?)\"?\)(.*)", r"Assign \2, not \1\3"),
    (r"Incompatible return value type \(got \"?(.+?)\"?, expected \"?(.+?)\"?\)(.*)", r"Return \2, not \1\3"),
    (r"N (?:is )?imported (?:but unused|and not used)(?: as \S+)?(.*)", r"Remove the unused import \1\2"),
    (r"(?:local variable )?N (?:is )?(?:assigned to but never used|declared and not used|declared but its value is never read)(.*)", r"Remove the unused \1\2"),
    (r"declared and not used: N", r"Remove the unused \1"),
    (r"(?:RuntimeError: )?Expected all tensors to be on the same device.*?devices, (\S+) and (\S+?)!.*", r"Move the model and every tensor to one device with .to(device): found \1 and \2"),
    (r".*CUDA out of memory.*", r"Reduce the batch size or free tensors (torch.no_grad()): CUDA out of memory"),
    (r"ValueError: (not enough|too many) values to unpack \(expected (\d+).*", r"Unpack as many values as are returned: \1 for \2 names"),
    (r"ValueError: invalid literal for (int|float)\(\).*?: (.+)", r"Validate the text before \1(): \2 is no number"),
    (r"ValueError: could not convert string to float: (.+)", r"Validate the text before float(): \1 is no number"),
    (r"RuntimeError: dictionary changed size during iteration", r"Iterate over a copy (list(d)): the dictionary changed size during iteration"),
    (r".*(?:Can't|cannot) pickle (?:local object |)N.*", r"Move \1 to module level: it can't be pickled"),
    (r"(?:TypeError: )?unhashable type: N", r"Use a hashable key (tuple, frozenset) instead of \1"),
    (r"(?:TypeError: )?N object is not subscriptable", r"Pass a container: \1 is not subscriptable"),
    (r"TypeError: (\S+\(\)) missing \d+ required (?:positional|keyword-only) arguments?: (.+)", r"Call \1 with its required argument \2"),
    (r"TypeError: (\S+\(\)) got an unexpected keyword argument N", r"Call \1 without \2: its signature has no such argument"),
    (r"TypeError: (\S+\(\)) takes (.+?) positional arguments? but (\d+) (?:was|were) given", r"Call \1 with \2 positional arguments, not \3"),
    (r"TypeError: 'NoneType' object is not (\w+)", r"Check for None first: a None value is not \1"),
    (r"TypeError: N object is not (\w+)", r"Pass a \2 object: \1 is not \2"),
    (r"TypeError: Object of type N is not JSON serializable", r"Convert \1 before json.dumps (default= or .isoformat()): it is not JSON serializable"),
    (r"TypeError: unsupported operand type\(s\) for (\S+): N and N", r"Convert to one type before \1: \2 and \3 do not mix"),
    (r"TypeError: can only concatenate str \(not N\) to str", r"Convert \1 to str before concatenating (f-string)"),
    (r"TypeError: can't compare offset-naive and offset-aware datetimes", r"Use datetime.now(UTC) everywhere: naive and aware datetimes cannot be compared"),
    (r"TypeError: object N can't be used in 'await' expression", r"Call \1 without await, or make the function async: \1 is not awaitable"),
    (r"(?:RuntimeWarning: )?coroutine N was never awaited.*", r"Await \1: the coroutine was never awaited"),
    (r"RuntimeError: (?:asyncio\.run\(\) cannot be called from a running event loop|This event loop is already running).*", r"Await the coroutine instead of asyncio.run(): an event loop is already running"),
    (r"(?:ModuleNotFoundError|ImportError): No module named N", r"Install \1 and declare it as a dependency (no such module)"),
    (r"ImportError: cannot import name N from partially initialized module N.*", r"Import \1 inside the function or move it out of \2: the modules import each other"),
    (r"ImportError: cannot import name N from N.*", r"Import \1 from where the installed \2 keeps it: \2 exports no \1"),
    (r"AttributeError: 'NoneType' object has no attribute N", r"Check for None before reading .\1"),
    (r"AttributeError: (?:partially initialized )?module N has no attribute N.*", r"Use the API of the installed \1: it has no \2"),
    (r"AttributeError: N object has no attribute N", r"Use an attribute that \1 has: it has no .\2"),
    (r"AttributeError: type object N has no attribute N", r"Use an attribute that \1 has: it has no .\2"),
    (r"KeyError: N", r"Provide the key \1, or read it with .get()"),
    (r"(?:IndexError|\w*IndexOutOfBounds\w*): (.+)", r"Check the length before indexing: \1"),
    (r"UnboundLocalError: (?:local variable|cannot access local variable) N.*", r"Assign \1 on every path before it is read"),
    (r"NameError: name N is not defined", r"Import or define \1 before use"),
    (r"UnicodeDecodeError: N codec can't decode.*", r"Open the file with its real encoding (encoding=...): it is not \1"),
    (r"json\.decoder\.JSONDecodeError: (.+)|JSONDecodeError: (.+)", r"Check status and content type before parsing JSON: \1\2"),
    (r"RecursionError: .+", r"Bound the recursion or iterate: maximum recursion depth exceeded"),
    (r"ValidationError: \d+ validation errors? for N (\S+) (?:Field required|field required).*", r"Give \1 a value for \2: the field is required"),
    (r"ValidationError: \d+ validation errors? for N (\S+) (.+?)(?: \[type=.*|$)", r"Give \1.\2 a valid value: \3"),
    (r"(?:\w+\.)*MultipleResultsFound: .*", r"Filter to one row or use .first(): several rows were found where one was required"),
    (r"(?:\w+\.)*DetachedInstanceError: .*", r"Load the relation before the session closes (selectinload, expire_on_commit=False): detached instance"),
    (r"(?:\w+\.)*MissingGreenlet: .*", r"Load relations eagerly (selectinload) with AsyncSession: lazy loading needs a greenlet"),
    (r"(?:\w+\.)*DoesNotExist: (\w+) matching query does not exist.*", r"Use get_object_or_404 or .filter().first(): \1 may not exist"),
    # Java
    (r"(?:.*\s)?[Uu]nresolved reference:? N.*", r"Import or declare \1: unresolved reference"),
    (r".*No enum constant (?:[a-z]\w*\.)*(\w+)\.(\w+).*", r"Pass a constant that \1 has, or add \2 to it"),
    (r".*Field N doesn't have a default value.*", r"Set \1 in the INSERT, or give the column a default"),
    (r".*Unrecognized field N \(class (?:[\w$]+\.)*([\w$]+)\).*", r"Declare \1 in \2 or ignore it (@JsonIgnoreProperties(ignoreUnknown = true))"),
    (r".*not-null property references a null or transient value ?: (?:[a-z]\w*\.)*(\S+)", r"Set \1 before saving: it is a not-null property"),
    (r".*object references an unsaved transient instance.*?: (?:[a-z]\w*\.)*(\w+)", r"Save \1 first or cascade PERSIST to it (unsaved transient instance)"),
    (r".*Request method N (?:is )?not supported.*", r"Call the route with a method that its mapping allows: \1 is not supported"),
    (r".*Required (?:request )?parameter N .*is not present.*", r"Send the request parameter \1: it is required"),
    (r".*release version (\d+) not supported.*|.*invalid (?:target|source) release: (\d+).*", r"Build with JDK \1\2 (JAVA_HOME) or lower maven.compiler.release: release version \1\2 not supported"),
    (r".*UnsupportedClassVersionError: (\S+) has been compiled by a more recent version.*", r"Run with the JDK that \1 was compiled for, or lower its release"),
    (r".*Cannot load driver class: (\S+).*|.*No suitable driver found for (\S+).*", r"Add the JDBC driver for \1\2 to the runtime class path"),
    (r".*Failed to configure a DataSource: 'url' attribute is not specified.*", r"Set spring.datasource.url, or exclude DataSourceAutoConfiguration"),
    (r"NoSuchElementException: No value present", r"Use orElseThrow() or orElse() instead of Optional.get(): no value present"),
    (r"StackOverflowError.*", r"Bound the recursion (cyclic toString, hashCode or JSON reference): StackOverflowError"),
    (r"InvalidUseOfMatchersException: .*", r"Wrap every argument in a matcher (eq(), any()): Mockito mixes no matchers with raw values"),
    (r".*Unable to resolve service for type '(?:\w+\.)*([\w<>`]+)'(?: while attempting to activate '(?:\w+\.)*([\w<>`]+)')?.*", r"Register \1 in the service collection (AddScoped or AddSingleton): \2 needs it"),
    (r"NullPointerException: Cannot (?:invoke|read field|load from|store to|assign field) \"(?:[a-z]\w*\.)*([^\"]+)\"(?: because \"?(.+?)\"? is null)?", r"Check \2 for null before \1"),
    (r"(?:NoSuchBeanDefinitionException: )?.*No qualifying bean of type '(?:[a-z]\w*\.)*(\w+)'.*", r"Declare a bean of type \1 (@Component or @Bean) in a scanned package"),
    (r"NoUniqueBeanDefinitionException: No qualifying bean of type '(?:[a-z]\w*\.)*(\w+)'.*", r"Mark one \1 bean @Primary or inject it with @Qualifier"),
    (r"(?:BeanCurrentlyInCreationException|.*circular reference).*", r"Break the bean cycle: move shared logic out or inject with @Lazy"),
    (r"BindingException: Invalid bound statement \(not found\): (?:\w+\.)*(\w+\.\w+)", r"Match mapper XML namespace and id with \1 and set mapper-locations (Invalid bound statement)"),
    (r"BindingException: Parameter '(\w+)' not found.*", r"Annotate the mapper parameter with @Param(\"\1\")"),
    (r"LazyInitializationException: .*?(?:role: )?(?:[a-z]\w*\.)*(\w+\.\w+)?(?:: could not initialize proxy.*|, could not initialize proxy.*)", r"Fetch \1 inside the transaction (JOIN FETCH or @EntityGraph): LazyInitializationException"),
    (r"(?:ClassNotFoundException|NoClassDefFoundError): (\S+)", r"Add the dependency that provides \1 to the runtime class path"),
    (r"(?:NoSuchMethodError|NoSuchFieldError): (.+)", r"Align library versions: the class path has no \1"),
    (r"ClassCastException: (?:class )?(?:[\w$]+\.)*([\w$]+) cannot be cast to (?:class )?(?:[\w$]+\.)*([\w$]+).*", r"Convert \1 to \2 instead of casting"),
    (r"ConcurrentModificationException.*", r"Remove through Iterator.remove() or removeIf(): the collection changed while iterated"),
    (r"UnsupportedOperationException.*", r"Copy to a mutable collection (new ArrayList<>(...)) before changing it"),
    (r"HttpMessageNotReadableException: (.+)", r"Send a body that Jackson can map: \1"),
    (r"InvalidDefinitionException: .*`?(?:[a-z]\w*\.)+(\w+)`? .*", r"Register the Jackson module for \1 (jackson-datatype-jsr310 for java.time)"),
    (r"DataIntegrityViolationException: (.+)", r"Satisfy the constraint before saving: \1"),
    (r"OptimisticLock\w*Exception.*|ObjectOptimisticLockingFailureException.*", r"Reload the entity and retry: its @Version changed"),
    (r"(?:CannotGetJdbcConnectionException|SQLTransientConnectionException): (\S+) - Connection is not available.*", r"Close connections or raise maximumPoolSize: \1 has none available"),
    (r".*Could not resolve placeholder N in value.*", r"Define the property \1 (application.yml or environment)"),
    (r".*cannot find symbol\W+(?:symbol: *)?(?:\w+) (\S+)\W+location: *(?:variable \w+ of type|class|interface) (?:[a-z]\w*\.)*(\w+).*", r"Declare or import \1: \2 has no such symbol"),
    (r"UnnecessaryStubbingException.*", r"Remove stubbings that the test does not use, or use lenient() (Mockito strict stubs)"),
    (r"IllegalStateException: Duplicate key (.+)", r"Give Collectors.toMap a merge function: duplicate key \1"),
    (r"NumberFormatException: For input string: (.+)", r"Validate the number before parsing: \1 is none"),
    (r"OutOfMemoryError: (.+)", r"Stream or page the data, or raise -Xmx: \1"),
    # TypeScript and JavaScript
    (r".*(?:ERR_PNPM_OUTDATED_LOCKFILE|can only install packages when your package\.json and package-lock\.json|lockfile (?:would have been|needs to be) (?:modified|updated)).*", r"Install without --frozen-lockfile and commit the lock file: it is not in sync with package.json"),
    (r".*error (TS2345|TS2322): (?:Argument of type|Type) '(.+?) \| (undefined|null)' is not assignable to (?:parameter of )?type '(.+?)'\.?(?: .*)?", r"Check for \3 first: \4 is required, not \2 | \3 (\1)"),
    (r".*No provider for (?:[\w$]+ -> )*([\w$]+)!?.*", r"Provide \1 (providers, or import its module): no provider for it"),
    (r".*[Nn]ot compatible with your version of node/npm: (\S+).*", r"Use a Node version that \1 supports (engines)"),
    (r"(?:.*: )?(?:[Cc]ould not|[Cc]an't|[Cc]annot|[Ff]ailed to) resolve(?: import)? ['\"](\.{1,2}/[^'\"]+|@/[^'\"]+|~/[^'\"]+)['\"](?: (?:from|in) ['\"]?([^'\"]+?)['\"]?)?(?:\. .*)?", r"Correct the import path \1 (or its alias): it does not resolve from \2"),
    (r".*[Ee]nvironment variable not found: (\w+).*", r"Set the environment variable \1"),
    (r".*React Hook N (?:has a missing dependency|has missing dependencies): (.+?)\.? Either.*", r"Add \2 to the dependency array of \1"),
    (r".*React Hook N is called conditionally.*", r"Call \1 unconditionally, at the top of the component"),
    (r".*(?:error:0308010C|ERR_OSSL_EVP_UNSUPPORTED).*", r"Upgrade webpack, or set NODE_OPTIONS=--openssl-legacy-provider: digital envelope routines unsupported (OpenSSL 3)"),
    (r"(?:SyntaxError: )?Unexpected token '?(?:export|import)'?.*", r"Transpile the ES module (transformIgnorePatterns in Jest, or \"type\": \"module\"): unexpected export"),
    (r".*[Ee]ach child in a list should have a unique \"?key\"? prop.*", r"Give each child of a list a unique key prop"),
    (r".*Invalid hook call.*", r"Call hooks only in the body of a function component, with one copy of React"),
    (r".*Objects are not valid as a React child \(found: (.+?)\).*", r"Render a field, not the object: React cannot render \1"),
    (r"Property N was accessed during render but is not defined on instance.*", r"Define \1 in setup() or data(): the template uses it"),
    (r".*error TS2564: Property N has no initializer.*", r"Initialize \1 in the constructor, or declare it optional (TS2564)"),
    (r".*error TS2554: Expected (\S+) arguments?, but got (\d+).*", r"Pass \1 arguments, not \2 (TS2554)"),
    (r".*error TS2305: Module N has no exported member N.*", r"Import a name that \1 exports: it has no \2 (TS2305)"),
    (r".*error TS7016: Could not find a declaration file for module N.*", r"Install the types of \1 (@types) or declare the module (TS7016)"),
    (r".*error (TS6133|TS6196): N is declared but .*never (?:read|used).*", r"Remove the unused \2 (\1)"),
    (r".*requested module N does not provide an export named N.*", r"Import a name that \1 exports: it has no \2"),
    (r"(?:Error: )?Cannot find package N.*", r"Install \1 and declare it as a dependency (no such package)"),
    (r".*Executable doesn't exist at .*", r"Run npx playwright install before the tests: the browser is not installed"),
    (r"(?:TypeError: )?Cannot (read|set) propert(?:y|ies) of (undefined|null) \((?:reading|setting) N\)", r"Check for \2 before .\3 (optional chaining ?.)"),
    (r"(?:TypeError: )?(?:Cannot destructure property) N of N as it is (undefined|null).*", r"Give \2 a default before destructuring \1: it may be \3"),
    (r"(?:TypeError: )?N is not a function", r"Check that \1 is exported and imported as a function"),
    (r"(?:TypeError: )?N is not iterable.*", r"Default \1 to an empty array: it is not iterable"),
    (r"(?:TypeError: )?N is not a constructor", r"Import \1 as a class (default or named export): it is not a constructor"),
    (r"ReferenceError: Cannot access N before initialization", r"Declare \1 before use, or break the import circle"),
    (r"ReferenceError: (window|document|localStorage|navigator) is not defined", r"Use \1 in the browser only (useEffect, onMounted, typeof guard): it is not defined on the server"),
    (r"ReferenceError: N is not defined(?: in ES module scope.*)?", r"Import or define \1 before use"),
    (r"(?:Error: )?Cannot find module N.*", r"Install \1 or correct the import path"),
    (r"(?:Error )?\[?ERR_REQUIRE_ESM\]?.*?(?:require\(\) of ES Module (\S+).*)?", r"Use import() instead of require(): \1 is an ES module"),
    (r"(?:SyntaxError: )?Cannot use import statement outside a module", r"Set \"type\": \"module\" or transpile: import statement outside a module"),
    (r"SyntaxError: Unexpected token .+ (?:in JSON|is not valid JSON).*", r"Check res.ok and content-type before res.json(): the body is no JSON"),
    (r".*error TS2339: Property N does not exist on type '(.+?)'\.?(?: .*)?", r"Declare \1 on type \2 or narrow it first (TS2339)"),
    (r".*error TS2345: Argument of type '(.+?)' is not assignable to parameter of type '(.+?)'\.?(?: .*)?", r"Pass \2, not \1 (TS2345)"),
    (r".*error TS2322: Type '(.+?)' is not assignable to type '(.+?)'\.?(?: .*)?", r"Assign \2, not \1 (TS2322)"),
    (r".*error TS2304: Cannot find name N.*", r"Import or declare \1 (TS2304)"),
    (r".*error TS2307: Cannot find module N.*", r"Install \1 and its types, or map the path in tsconfig (TS2307)"),
    (r".*error TS2531: Object is possibly N.*|.*error TS(?:2532|18048|18047): N is possibly N.*", r"Narrow \1\2 before use: it may be \3 (strictNullChecks)"),
    (r".*error TS7006: Parameter N implicitly has an 'any' type\.?", r"Annotate parameter \1 (TS7006, noImplicitAny)"),
    (r".*error TS2741: Property N is missing in type '(.+?)' but required in type '(.+?)'\.?(?: .*)?", r"Provide \1: type \3 requires it (TS2741)"),
    (r".*error (TS\d+): (.+)", r"Satisfy the compiler (\1): \2"),
    (r"(?:\d+:\d+\s+error\s+)?'?(\w+)'? is (?:assigned a value|defined) but never used\s*(\S*)", r"Remove the unused \1 (\2)"),
    (r"\d+:\d+\s+error\s+(.+?)\s{1,}((?:@?[\w-]+/)*[\w-]+)", r"Satisfy \2: \1"),
    (r"Missing required prop: N(?: at <(\w+).*)?", r"Pass the required prop \1 to \2"),
    (r"Failed to resolve component: N.*", r"Register or import the component \1, or correct its name"),
    (r".*(?:Hydration failed|Text content does not match server-rendered HTML).*", r"Render the same HTML on server and client; move browser-only values to useEffect (hydration)"),
    (r".*Too many re-renders.*", r"Set state in a handler or effect, never while rendering: too many re-renders"),
    (r".*not wrapped in act\(.*", r"Wrap state updates in act() or await findBy queries"),
    (r"peer (\S+) from (\S+).*", r"Align peer dependencies: \2 needs \1"),
    (r".*\bJavaScript heap out of memory.*", r"Raise NODE_OPTIONS=--max-old-space-size or split the work: heap out of memory"),
    # Shell, system, network
    (r".*no matches for kind N in version N.*", r"Use an apiVersion that serves \1: the cluster has no \2"),
    (r".*\bnot authorized to perform: (\S+)(?: on resource: (\S+))?.*", r"Grant the missing permission \1 on \2"),
    (r".*env: N: No such file or directory", r"Install \1 or correct the shebang (#!/usr/bin/env \1)"),
    (r".*ERR_CONNECTION_REFUSED.*?https?://([\w.-]+:\d+).*", r"Start the server on \1 before the test, and wait until it listens"),
    (r"The connection to the server (\S+) was refused.*", r"Start the server on \1 or choose the right context (kubeconfig): connection refused"),
    (r"(?:.*\s)?(\S+?): (?:line )?\d+: \$'\\r': command not found", r"Convert \1 to LF line endings (dos2unix): it has CRLF"),
    (r"(.*?):? ?\*\*\* missing separator.*", r"Indent recipe lines with a tab, not blanks: \1 missing separator"),
    (r".*[Pp]ermission denied \(publickey\).*", r"Add an SSH key that the remote accepts (ssh-add, deploy key): permission denied (publickey)"),
    (r".*(?:are you root\?|Could not open lock file (\S+)).*", r"Run the package manager as root (sudo): \1"),
    (r".*CONFLICT \([^)]*\): Merge conflict in (\S+).*", r"Resolve the merge conflict in \1 and commit the result"),
    (r".*unable to auto-detect email address.*|.*[Pp]lease tell me who you are.*", r"Set git config user.email and user.name before committing"),
    (r".*local changes to the following files would be overwritten.*", r"Commit or stash local changes before git merge or checkout"),
    (r".*exec format error.*", r"Build for the platform that runs it (--platform), and begin scripts with a shebang: exec format error"),
    (r".*[Aa]rgument list too long.*", r"Pass the files through xargs or find -exec: argument list too long"),
    (r".*\[: .*(too many arguments|unary operator expected|binary operator expected).*", r"Quote the variables inside [ ]: \1"),
    (r".*failed to calculate checksum of ref.*?\"(\S+?)\": not found.*|.*COPY failed: .*?(\S+): no such file or directory.*", r"Put \1\2 into the build context (COPY path, .dockerignore): not found"),
    (r"(?:Failed to pull image|Back-off pulling image) N.*?(?:401 Unauthorized|authentication required|denied).*", r"Give the pod imagePullSecrets for \1: the registry answers 401 Unauthorized"),
    (r".*OOMKilled.*?container N.*", r"Raise the memory limit of container \1 or use less memory: OOMKilled"),
    (r".*OOMKilled.*", r"Raise the container's memory limit or use less memory: OOMKilled"),
    (r".*\b(configmap|secret|service|deployment|namespace|serviceaccount|persistentvolumeclaim)s?(?:\.\w+)? N not found.*", r"Create the \1 \2 first, or correct its name or namespace: not found"),
    (r"(?:.*: )?N: command not found", r"Install \1 or add it to PATH before it is called"),
    (r"(?:(?:.*: )?command not found|fish: Unknown command): N", r"Install \1 or add it to PATH before it is called"),
    (r"\S*sh: (?:line )?(?:\d+: )?N: not found", r"Install \1 or add it to PATH before it is called"),
    (r"(?:.*: )?(\w+): unbound variable", r"Set \1 or give it a default ${\1:-} (set -u)"),
    (r"(?:.*: )?(\S+): (?:/bin/)?\S*\^M: bad interpreter.*", r"Convert \1 to LF line endings (dos2unix): CRLF breaks its shebang"),
    (r"(?:.*: )?(?!connect|dial|open|mkdir)N: [Pp]ermission denied", r"Give the right to use \1 (chmod +x or owner): permission denied"),
    (r"(?:.*(?:ENOENT|FileNotFoundError).*?|.*: )?(?:no such file or directory|No such file or directory)(?:, \w+| *:)? N", r"Create \1 first or correct its path: no such file"),
    (r"(?:.*: )?N: No such file or directory", r"Create \1 first or correct its path: no such file"),
    (r".*?([\w.-]+:\d+).*[Cc]onnection refused.*", r"Start the service on \1 and wait until it listens (connection refused)"),
    (r".*EADDRINUSE.*?:{1,3}(\d+).*|.*[Aa]ddress already in use.*?:(\d+).*", r"Free port \1\2 or configure another one (EADDRINUSE)"),
    (r".*(?:ECONNREFUSED|[Cc]onnection refused).*?([\w.-]+:\d+).*", r"Start the service on \1 and wait until it listens (ECONNREFUSED)"),
    (r".*(?:ENOTFOUND|Name or service not known|getaddrinfo|[Cc]ould not resolve host:)\s*N?.*", r"Check the host name \1: it does not resolve (use the service's name)"),
    (r".*(?:ENOSPC|No space left on device).*", r"Free disk space or raise fs.inotify.max_user_watches (ENOSPC)"),
    (r".*EMFILE.*|.*[Tt]oo many open files.*", r"Close files or raise ulimit -n (EMFILE)"),
    (r".*[Bb]ind for \S*:(\d+) failed: port is already allocated.*", r"Free port \1 or map another one: it is already allocated"),
    (r".*(?:Could not find a version that satisfies the requirement|No matching distribution found for) (\S+).*", r"Pin \1 to a version that exists for this Python"),
    (r".*pull access denied for (\S+?),.*", r"Log in (docker login) or correct the image name \1: access denied"),
    (r"(?:.*\s)?N is not in (?:this|the npm) registry.*", r"Correct the name \1 or configure its registry (.npmrc)"),
    (r"fatal: not a git repository.*", r"Run git inside the checkout, or git init first"),
    (r".*(?:CERTIFICATE_VERIFY_FAILED|self[- ]signed certificate).*", r"Trust the CA (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS); keep verification on"),
    (r".*blocked by CORS policy.*", r"Allow the origin on the server (Access-Control-Allow-Origin) or use the dev proxy: CORS"),
    (r"make: \*\*\* No rule to make target N.*", r"Declare or create the make target \1"),
    (r"(?:.*\s)?(\S+): Invalid value: .*field is immutable.*", r"Delete and recreate the resource to change \1: the field is immutable"),
    (r".*Unable to resolve action `?([\w./-]+)@\S+, unable to find version N.*", r"Use a version of \1 that exists: there is no \2"),
    # Databases
    (r"deadlock detected in relation N", r"Lock rows of \1 in one order, keep transactions short and retry: deadlock"),
    (r".*nonaggregated column N.*", r"Put \1 into GROUP BY or aggregate it (only_full_group_by)"),
    (r".*E11000 duplicate key error collection: (\S+) index: (\S+).*", r"Upsert or check first: unique index \2 of \1"),
    (r"(?:.*?Invalid `(.+?)` invocation.*?)?[Uu]nique constraint failed on the \w+: \(?`?(\w+)`?\)?.*", r"Upsert or check first: \2 is unique (\1)"),
    (r".*Duplicate entry N for key N.*", r"Upsert (ON DUPLICATE KEY UPDATE) or check first: key \2 is unique"),
    (r".*Data too long for column N.*|.*value too long for type (.+)", r"Shorten the value or widen the column \1\2: too long"),
    (r".*Incorrect string value.*for column N.*", r"Use utf8mb4 for column \1: incorrect string value"),
    (r".*[Cc]annot add or update a child row: a foreign key constraint fails.*CONSTRAINT N.*", r"Insert the referenced row first: foreign key \1"),
    (r".*NOT NULL constraint failed: (\S+).*", r"Provide \1: the column is NOT NULL"),
    (r".*FOREIGN KEY constraint failed.*", r"Insert the referenced row first, or delete the referring ones: FOREIGN KEY constraint"),
    (r".*current transaction is aborted.*", r"Roll back after the first error (or use a savepoint): the transaction is aborted"),
    (r".*invalid input syntax for (?:type )?(\w+): (.+)", r"Convert to \1 before the query: invalid input \2"),
    (r".*(?:too many connections|remaining connection slots are reserved).*", r"Pool connections or raise max_connections: too many connections"),
    (r".*password authentication failed for user N.*", r"Set valid credentials for the database user \1"),
    (r".*permission denied for (table|schema|relation|database|sequence) N.*", r"Grant the right to use \1 \2"),
    (r".*relation N does not exist.*|.*[Tt]able N (?:doesn't|does not) exist.*|.*no such table: N", r"Run the migration that creates \1\2\3 first"),
    (r".*column N (?:of relation \S+ )?does not exist.*|.*[Uu]nknown column N.*|.*no such column: N", r"Migrate or correct the column \1\2\3: it does not exist"),
    (r".*duplicate key value violates unique constraint N.*", r"Upsert (ON CONFLICT) or check first: unique constraint \1"),
    (r".*violates foreign key constraint N.*", r"Insert the referenced row first: foreign key \1"),
    (r".*null value in column N .*violates not-null.*", r"Provide \1: the column is NOT NULL"),
    (r".*UNIQUE constraint failed: (\S+).*", r"Upsert (ON CONFLICT) or check first: \1 is unique"),
    (r".*database is locked.*", r"Set busy_timeout and keep SQLite transactions short: database is locked"),
    (r".*(?:Lock wait timeout exceeded|[Dd]eadlock found|deadlock detected).*", r"Lock rows in one order, keep transactions short and retry: deadlock"),
    # Go, Rust
    (r"error\[(E0502|E0499|E0506|E0505)\]: cannot (?:borrow|assign to|move out of) N .*", r"End the other borrow of \2 first (collect, clone or narrow its scope): \1"),
    (r"cannot use (.+?) \((?:.*? of )?(?:struct |interface )?type (\S+)\) as (\S+) value in (.+)", r"Convert \1 from \2 to \3 in \4"),
    (r".*assignment to entry in nil map.*", r"Initialise the map with make() before assigning: nil map"),
    (r"DATA RACE: (.+)", r"Guard what \1 share with a mutex or channel: data race"),
    (r"(?:.*\s)?imports (\S+): import cycle not allowed.*", r"Break the import cycle of \1: move what both packages need into a third"),
    (r".*all goroutines are asleep - deadlock.*", r"Let another goroutine send, receive or close the channel: all goroutines are asleep"),
    (r".*concurrent map (?:read and map write|writes|iteration and map write).*", r"Guard the map with sync.RWMutex or use sync.Map: concurrent map access"),
    (r".*missing go\.sum entry for module providing package N.*", r"Run go mod tidy: go.sum has no entry for \1"),
    (r"error\[E0277\]: the trait bound `(.+?): (.+?)` is not satisfied.*", r"Implement \2 for \1 or pass a type that has it (E0277)"),
    (r"error\[(E0432|E0433)\]: .*?`(.+?)`.*", r"Add the crate or correct the path \2 (\1)"),
    (r".*panic: runtime error: invalid memory address or nil pointer dereference.*", r"Check for nil before dereferencing: nil pointer"),
    (r"panic: interface conversion: (.+)", r"Check the type first (v, ok := x.(T)): \1"),
    (r".*panic: runtime error: (.+)", r"Check bounds first: \1"),
    (r"(?:\S+\.go:\d+:\d+: )?undefined: N", r"Import or define \1"),
    (r"error\[E0382\]: (?:borrow|use) of moved value: N.*", r"Clone or borrow \1 before it moves (E0382)"),
    (r"error\[(E\d+)\]: (.+)", r"Satisfy the borrow or type checker (\1): \2"),
    (r".*panicked at .*called `(Option|Result)::unwrap\(\)` on an? `(\w+)` value.*", r"Handle \2 with ? or match instead of \1::unwrap()"),
    # Tests and browsers
    (r".*element click intercepted: Element (.+?) is not clickable.*", r"Wait until nothing covers \1 before clicking it (element click intercepted)"),
    (r".*`cy\.(\w+)\(\)` failed because (?:this|the) element is `?(?:being )?(\w+)`?.*", r"Wait until the element is no longer \2 before cy.\1()"),
    (r".*stale element reference.*", r"Find the element again after the page changed: stale element reference"),
    (r".*strict mode violation: (.+?) resolved to (\d+) elements.*", r"Narrow the locator \1 (.first(), exact: true): it matches \2 elements"),
    (r".*(?:Timed out|Timeout)\s*(?:of )?(\d+) ?ms (?:exceeded )?(?:waiting for|while waiting for) (.+)", r"Wait for \2 to be ready before asserting (timed out after \1 ms)"),
    (r".*(?:TimeoutError|Timeout).*?(?:waiting for (?:locator|selector|element)\s*[(:]?\s*)(.+?)\)?(?: to be visible.*|$)", r"Wait for \1 to appear before acting on it (timeout)"),
    (r".*[Ee]lement (?:is )?not (visible|attached|interactable|clickable).*", r"Wait until the element is \1 before acting on it"),
    (r".*Exceeded timeout of (\d+) ms for a (test|hook).*", r"Await every promise or call done(): the \2 exceeded \1 ms"),
    (r".*NoSuchElementException: .*?\"selector\":\"(.+?)\".*", r"Wait for \1 (WebDriverWait) before finding it"),
    (r"(.+): expected (.+), (?:received|got) (.+)", r"Satisfy \1: expected \2, got \3"),
    (r".*No N export is defined on the N mock.*", r"Return \1 from the vi.mock factory of \2 (importOriginal)"),
    (r"fixture N not found", r"Define the fixture \1 in conftest.py, or install the plugin that has it"),
    (r".*Expected to find (?:element|content): (.+?),? but never (?:found|did).*", r"Make the page render \1, or wait for it, before asserting"),
    (r"expected (.+), received (.+)", r"Expected \1, got \2: correct the code or the expectation"),
    (r"\S+_test\.go:\d+: (.+?)(?: =|:)? got (.+?), want (.+)", r"Make \1 give \3, not \2"),
    (r"(?:AssertionError: )?assert (.+?) == (.+)", r"Expected \2, got \1: correct the code or the expectation"),
    (r"(.+?) = (.+?), want (.+)", r"Make \1 give \3, not \2"),
    (r"AssertionFailedError: (?:(.+?) ==> )?expected: ?<(.+?)> but was: ?<(.+?)>", r"Expect \2, not \3: \1"),
    (r"Wanted but not invoked: (.+?)(?: -> .*|$)", r"Call \1 on the tested path (Mockito: wanted but not invoked)"),
    # What is missing, by the name of its kind
    (r"(?:\S+: )?[Mm]issing (?:required )?(?:environment variable|env var|setting|config\w*)s?:? ['\"`]?([A-Za-z]\w*(?:[._-]\w+)+|[A-Z]\w+)['\"`]?", r"Set \1: required"),
    (r"(?:\S+: )?[Mm]issing required (?:argument|arg|option)s?:? ['\"`]?([\w.\[\]-]*[\w\]])['\"`]?\.?", r"Pass \1: required"),
    (r"(/\S+): [Mm]issing required (header|query parameter|parameter|param|field|property|cookie)s?:? ['\"`]?([\w.\[\]-]*[\w\]])['\"`]?\.?", r"Send the \2 \3 to \1: required"),
    (r"(?:\S+: )?[Mm]issing required (?:header|query parameter|parameter|param|field|property|cookie)s?:? ['\"`]?([\w.\[\]-]*[\w\]])['\"`]?\.?", r"Send \1: required"),
    # HTTP and APIs
    (r"(.*?)(?:\b|_)(?:[Ii]nvalid.?[Aa][Pp][Ii].?[Kk]ey|[Ii]ncorrect API key|invalid_grant|invalid_token)\b(?:.*)", r"Set valid credentials: \g<0>"),
    (r".*User \"(.+?)\" cannot (\w+) resource \"(\w+)\"(?: in API group \"\w*\")?(?: in the namespace \"([\w-]+)\")?.*", r"Grant \1 the right to \2 \3 in \4 (RBAC Role)"),
    (r"(.*?): (?:[Ff]ield required|is required|must not be (?:null|blank|empty)|may not be null|cannot be blank)", r"Send \1: the field is required"),
    (r"(/\S+): Not Found", r"Call a route that exists: \1 answers 404"),
    (r".*注入.*\$\{(\w+)\}.*", r"使用 #{\1} 代替 ${\1} 绑定参数，避免 SQL 注入"),
    (r"Cannot query field N on type N", r"Query a field that \2 has: \1 is not in the schema"),
    (r"'?([\w./-]+)'? is required(.*)", r"Provide \1: it is required\2"),
)  # fmt: skip

_BROAD_ROWS: tuple[tuple[str, str], ...] = (
    (r"(?:[Mm]issing|[Rr]equired) (?:required )?(?:environment variable|env var|parameter|field|property|header|argument|option|setting)s?:? Q(.*)", r"Provide \1\2"),
    (r"(?:[Uu]nknown|[Uu]nrecognized|[Uu]nsupported|[Ii]nvalid) (option|argument|property|field|parameter|flag|setting|command)s?:? Q(.*)", r"Remove or rename the \1 \2\3: the installed version does not know it"),
    (r"(.*S429\b.*|.*[Rr]ate.?[Ll]imit.*|.*[Tt]oo [Mm]any [Rr]equests.*)", r"Back off and honour Retry-After: \1"),
    (r"(.*S401\b.*|.*\bUnauthorized\b.*)", r"Send valid credentials (Authorization): \1"),
    (r"(.*S403\b.*|.*\b[Ff]orbidden\b.*|.*[Aa]ccess ?[Dd]enied.*|.*not authorized to perform.*|.*[Pp]ermission denied.*)", r"Grant the missing permission: \1"),
    (r"(.*(?:context_length_exceeded|maximum context length).*)", r"Shorten the prompt or split it: \1"),
    (r"(.*S413\b.*|.*[Pp]ayload [Tt]oo [Ll]arge.*)", r"Send less or raise the body limit: \1"),
    (r"(.*S(?:502|503|504)\b.*|.*\b(?:502 Bad|503 Service|504 Gateway).*|.*(?:Bad Gateway|Service Unavailable|Gateway Time-?out).*)", r"Retry with backoff and check the upstream: \1"),
    (r"(?:Module not found: )?(?:Error: )?(?:[Cc]ould not|[Cc]an't|[Cc]annot|[Uu]nable to|[Ff]ailed to) (resolve|find|locate|import|load) (?:module |import |artifact |package |file |the )?(?!host\b|dependenc|all\b|any\b)Q.*", r"Install or declare \2, or correct its name (could not \1 it)"),
    (r"(.*(?:\b[Tt]imed[ -]out\b|\b\w*Timeout(?:Error|Exception|Expired)\b|\b(?:[A-Z]\w*)?Timeout\b|ETIMEDOUT|\btimeout (?:of|after|exceeded|expired|reached|waiting)\b|(?:exceed\w*|reached|hit) (?:the )?(?:\w+ )?timeout\b).*)", r"Raise the timeout or make it answer sooner: \1"),
)  # fmt: skip


class _Rule(NamedTuple):
    """A row; ``needle`` is a text without which its pattern can't match, so that few patterns are ever compiled."""

    needle: str
    pattern: str
    advice: str


_GROUP = re.compile(r"\((?:[^()\\]|\\.)*\)[?*+]?|\[(?:[^\]\\]|\\.)*\][?*+]?")
_ESCAPE = re.compile(r"\\[A-Za-z0-9]|\\(.)")
_OPTIONAL = re.compile(r".[?*]\??|.\{[^}]*\}|[.^$+]")


def _needle(pattern: str) -> str:
    """Return the longest text that stands in the pattern whatever else matches; empty where there is none."""
    bare = re.sub(
        r"\b[NQ]\b|\bS(?=\d|\(\?:\d)",
        "\0",
        pattern.replace("\\(", "\1").replace("\\)", "\2").replace("\\[", "\0").replace("\\]", "\0"),
    )
    while (shorter := _GROUP.sub("\0", bare)) != bare:
        bare = shorter
    if "|" in bare:
        return ""
    plain = _OPTIONAL.sub("\0", _ESCAPE.sub("\0", bare)).replace("\1", "(").replace("\2", ")")
    return max(plain.split("\0"), key=len)


@cache
def _rules(*, broad: bool) -> tuple[_Rule, ...]:
    rows = _BROAD_ROWS if broad else _ROWS
    return tuple(_Rule(_needle(pattern), pattern, told) for pattern, told in rows)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\b[NQ]\b|\bS(?=\d|\(\?:\d)", lambda found: _PLACES[found[0]], pattern))


def advice(complaint: str, *, broad: bool = False) -> str | None:
    """Return what to do about a complaint of fixed wording; ``None`` when no rule knows it.

    ``broad`` rules know but the general shape of a complaint: for one that does not say itself what to do.
    """
    text = complaint.strip()
    for rule in _rules(broad=broad):
        found = _compiled(rule.pattern).fullmatch(text) if rule.needle in text else None
        if found is not None:
            return " ".join(found.expand(rule.advice).replace('\\"', '"').split()).rstrip(": ")
    return None
