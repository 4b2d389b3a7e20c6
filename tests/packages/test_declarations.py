import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kr.packages.declarations import parse_declarations
from kr.packages.documented import Documented
from kr.packages.typescript import Declared

from kr.packages.installed_node import read_entry

SOURCE = """
import { a } from "x";
/** Creates a store; `}` and "quotes" do no harm. */
export declare function defineStore<S extends State = {}, G = {}>(id: string, options: StoreOptions<S>): Store<S>;
export declare function defineStore(setup: () => void): Store
declare const later: { a: 1 } & Rest;
/** What there is. */
export interface StoreOptions<S = {}> extends BaseOptions {
  /** The state.
   * @internal */
  hidden?: string;
  /** Getters of it. */
  getters?: Record<string, () => void>;
  nested?: {
    /** Inside. */
    deep?: boolean;
  };
  run(x: { y: 1 }): void
  "quoted-name"?: string;
}
interface BaseOptions {
  id?: string;
}
declare class Store<T extends {} = any>
  extends Base<T>
{
  private secret: number;
  get(): T;
}
declare namespace Inner {
  const x = 1, y: string;
}
type Union =
  | "a"
  | "b";
export { defineStore as make };
export * from "./other";
"""


def test_statements_and_members() -> None:
    found = {(d.kind, d.name): d for d in parse_declarations(SOURCE)}
    assert [key for key in found if key[0] != "import"] == [
        ("function", "defineStore"),
        ("const", "later"),
        ("interface", "StoreOptions"),
        ("interface", "BaseOptions"),
        ("class", "Store"),
        ("namespace", "Inner"),
        ("type", "Union"),
        ("export", ""),
    ]
    options = found["interface", "StoreOptions"]
    assert options.text == "export interface StoreOptions<S = {}> extends BaseOptions"
    assert [m.name for m in options.members] == ["hidden", "getters", "nested", "run", "quoted-name"]
    assert [m.name for m in options.members[2].members] == ["deep"]
    assert [m.name for m in found["class", "Store"].members] == ["get"]
    assert found["const", "later"].text == "declare const later: { a: 1 } & Rest"
    assert found["type", "Union"].text.endswith('| "b"')


def documented(*sources: str, offered: frozenset[str] | None = frozenset()) -> dict[str, Documented]:
    declared = Declared(
        [(f"{at}.d.ts", parse_declarations(text)) for at, text in enumerate(sources)], offered
    )
    return {found.name: found for _, found in declared.documented()}


def test_a_function_brings_the_options_it_takes() -> None:
    found = documented(SOURCE, offered=frozenset({"defineStore"}))["defineStore"]
    assert found.docstring == 'Creates a store; `}` and "quotes" do no harm.'
    assert found.signature.count("export declare function defineStore") == 2
    assert "  getters?: Record<string, () => void>;" in found.signature
    assert "interface BaseOptions {\n  id?: string;\n}" in found.signature
    assert "hidden" not in found.signature
    assert found.weight > documented(SOURCE)["defineStore"].weight


def test_the_options_that_a_signature_names_are_told_with_it() -> None:
    options = (
        "export interface LimiterOptions {\n  /** Jobs at most. */\n  max: number;\n  seconds: number;\n}\n"
    )
    limiter = "  /** Sets a limit of the rate. */\n  limiter?: LimiterOptions;"
    worker = f"export interface Worker {{\n{limiter}\n{BIG}\n}}\n"
    found = documented(f"{options}{worker}export declare function limit(options: LimiterOptions): void;\n")
    assert found["Worker.limiter"].more == found["limit"].more == "- `max`: Jobs at most."
    assert "max: number;" in found["Worker.limiter"].signature


def test_a_class_has_the_members_of_what_its_base_makes() -> None:
    base = "declare const Signer_base: new (payload?: t.Payload) => t.Produces;\n"
    expiry = "  /** Sets when it expires. */\n  setExpiry(at: Date): this;"
    made = f"export interface Produces {{\n{expiry}\n{BIG}\n}}\n"
    sign = "  /** Signs and returns it. */\n  sign(): string;"
    own = f"export declare class Signer extends Signer_base {{\n{sign}\n}}\n"
    found = documented(base + made + own, offered=frozenset({"Signer"}))
    assert "Signer_base" not in found
    head = "export declare class Signer extends Signer_base {\n  constructor(payload?: t.Payload);\n"
    assert found["Signer.setExpiry"].signature == f"{head}  setExpiry(at: Date): this;\n}}"
    assert found["Signer.sign"].signature == f"{head}  sign(): string;\n}}"


BIG = "\n".join(f"  /** Option {n}. {'Long. ' * 20} */\n  option{n}?: string;" for n in range(12))


def test_a_long_comment_inside_of_a_member_is_no_code_of_it() -> None:
    long = "     * await test.step('Log in', async () => {});\n" * 120
    source = f"export interface Test {{\n  /** Declares a step of it. */\n  step: {{\n    /**\n{long}     */\n    skip(): void;\n  }};\n}}\n"
    _, found = next(iter(Declared([("test.d.ts", parse_declarations(source))], None).documented()))
    assert "skip(): void" in found.signature
    assert "Log in" not in found.signature


def test_comments_inside_of_an_alias_are_no_code_of_it() -> None:
    """ky's options: words of their comments passed for members."""
    members = "".join(
        f"    /**\n    Tells of it at length. {'And so on. ' * 30}\n\n    @default {n}\n    */\n    option{n}?: string;\n"
        for n in range(6)
    )
    source = f"/** What a client takes. */\nexport type KyOptions = {{\n{members}}};\n"
    own = documented(source)["KyOptions"]
    assert own.docstring == "What a client takes."
    assert "Tells" not in own.signature
    assert "option3?: string;" in own.signature


def test_a_comment_in_an_example_is_whole() -> None:
    source = "/**\n * Runs it.\n * @example\n * run(() => { /* ... *\\/ });\n */\nexport function run(what: () => void): void;\n"
    (found,) = Declared([("index.d.ts", parse_declarations(source))], None).documented()
    assert "{ /* ... */ });" in found[1].docstring


def test_an_option_is_shown_below_its_container() -> None:
    found = documented(
        f"""
export interface UserConfig {{
  /** The server. */
  server?: ServerOptions;
  plugins?: Plugin[];
{BIG}
}}
export interface CommonServerOptions {{
  /** Rules of the proxy. */
  proxy?: Record<string, string | ProxyOptions>;
{BIG}
}}
export interface ServerOptions extends CommonServerOptions {{
  hmr?: boolean;
}}
export interface ProxyOptions {{
  target?: string;
}}
"""
    )
    assert "CommonServerOptions.proxy" not in found
    proxy = found["server.proxy"]
    assert "// server.proxy\n  proxy?: Record<string, string | ProxyOptions>;" in proxy.signature
    assert "interface ProxyOptions {\n  target?: string;\n}" in proxy.signature
    assert proxy.docstring == "Rules of the proxy."


def test_types_weigh_less_than_what_can_be_called() -> None:
    source = "export interface Guard { a: string; }\nexport declare function guard(): void;\n"
    found = documented(source, offered=frozenset({"Guard", "guard"}))
    assert found["Guard"].weight < found["guard"].weight


def test_the_same_in_two_bundles_is_told_once() -> None:
    source = "export declare function go(): void;\n"
    declared = Declared([(name, parse_declarations(source)) for name in ("a.d.ts", "a.d.mts")], None)
    assert len(list(declared.documented())) == 1


@pytest.mark.parametrize(
    "piece", ["/*", "/** a */ ", "`", "{", "}", "a\n", "a:\n", "\n", "'", '"', "a<{}", "interface a {"]
)
def test_time_is_linear(piece: str) -> None:
    began = time.process_time()
    parse_declarations(piece * 50_000)
    assert time.process_time() - began < 5


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="{}()[];:=<>/*\n 'a\"`,exportinterface", max_size=120))
def test_any_text_is_taken(text: str) -> None:
    documented(text)


def package(root: Path, manifest: dict[str, object], files: dict[str, str]) -> Path:
    for name, text in ({"package.json": json.dumps(manifest)} | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root.resolve()


@pytest.mark.parametrize(
    "manifest",
    [
        {"types": "dist/index.d.ts"},
        {"typings": "./dist/index.d.ts"},
        {"main": "dist/index.js"},
        {"exports": {".": {"import": {"types": "./dist/index.d.ts", "default": "./x.js"}}}},
        {"exports": {"types@>=4": "./dist/index.d.ts"}},
        {"exports": "./dist/index.js"},
    ],
)
def test_the_manifest_leads_to_the_declarations(tmp_path: Path, manifest: dict[str, object]) -> None:
    root = package(
        tmp_path,
        manifest,
        {
            "dist/index.d.ts": 'export * from "./part.js";\nexport { b as c, type D } from "./more";\nexport * from "@scope/core";\n',
            "dist/part.d.ts": "export declare function a(): void;\n",
            "dist/more/index.d.ts": 'import { x } from "other";\nexport declare const b: x;\nexport interface D {}\n',
            "dist/unrelated.d.ts": "export declare const z: 1;\n",
        },
    )
    found = read_entry(root, manifest)
    assert [path.relative_to(root).as_posix() for path in found.declarations] == [
        "dist/index.d.ts",
        "dist/part.d.ts",
        "dist/more/index.d.ts",
    ]
    assert found.packages == ["@scope/core"]
    assert found.offered == frozenset({"a", "c", "D"})


def test_one_exported_object_offers_all_its_members(tmp_path: Path) -> None:
    source = "export = e;\nimport bodyParser = require('body-parser');\ndeclare namespace e {\n" + "".join(
        f"  var {name}: typeof bodyParser.{name};\n" for name in ("json", "raw", "text")
    )
    root = package(tmp_path, {}, {"index.d.ts": source + "}\n"})
    found = read_entry(root, {})
    assert (found.offered, found.packages) == (None, ["body-parser"])


def test_what_a_script_hands_on_is_followed(tmp_path: Path) -> None:
    root = package(
        tmp_path,
        {},
        {
            "index.js": "module.exports = require('./lib/main');\n",
            "lib/main.js": "var parser = require('body-parser')\nvar debug = require('debug')\n"
            "exports.json = parser.json\nexports.static = require('serve-static');\nexports.own = 3\n",
        },
    )
    assert read_entry(root, {}).packages == ["body-parser", "serve-static"]


def test_declarations_outside_of_the_package_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.d.ts").write_text("export declare const secret: 1;\n")
    root = package(
        tmp_path / "p", {}, {"index.d.ts": 'export * from "../secret";\nexport * from "./linked";\n'}
    )
    (root / "linked.d.ts").symlink_to(tmp_path / "secret.d.ts")
    for manifest in (
        {},
        {"types": "../secret.d.ts"},
        {"exports": {".": {"types": "../secret.d.ts"}}},
        {"types": "a\x00b"},
    ):
        assert read_entry(root, manifest).declarations == [root / "index.d.ts"]
