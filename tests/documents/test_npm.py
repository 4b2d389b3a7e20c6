"""Declarations of TypeScript, as the source has them."""

import time

import pytest

from kr.documents.npm import declarations

SOURCE = """
import { a } from "b";
/** Options of a run. */
export interface Options {
  /** How often; `;` and } are no end. */
  times?: number;
  name: "a{b" | 'c';
}
/**
 * Runs it.
 */
export declare function run(options: Options): Promise<void>;
declare const limit: number
export type Name = string | number;
declare namespace Deep {
  /** Inside. */
  class Box<T> { get(): T; }
}
declare module "tool" {
  export enum Kind { One, Two }
}
/** @internal */
export declare function hidden(): void;
"""


def read(text: str) -> dict[str, str]:
    return {one.name: one.signature for one in declarations(text, place="index.d.ts", prefix="tool")}


def test_each_declaration_has_its_comment() -> None:
    found = read(SOURCE)
    assert sorted(found) == [
        "tool.Deep.Box",
        "tool.Kind",
        "tool.Name",
        "tool.Options",
        "tool.limit",
        "tool.run",
    ]
    assert (
        found["tool.run"]
        == "/**\n * Runs it.\n */\nexport declare function run(options: Options): Promise<void>;"
    )
    assert found["tool.Options"].endswith("name: \"a{b\" | 'c';\n}")
    assert found["tool.Deep.Box"] == "/** Inside. */\nclass Box<T> { get(): T; }"


def test_a_long_interface_is_cut_between_its_members() -> None:
    members = "".join(
        f"  /** Member {number} is told here. */\n  member{number}?: string;\n" for number in range(80)
    )
    found = [
        one.signature
        for one in declarations(f"export interface Big {{\n{members}}}", place="a.d.ts", prefix="t")
    ]
    assert len(found) > 2
    assert all(piece.startswith("export interface Big") for piece in found)
    assert all(sum(f"member{number}?" in piece for piece in found) == 1 for number in range(80))
    assert all(
        f"Member {number} is" in piece
        for piece in found
        for number in range(80)
        if f"member{number}?" in piece
    )


@pytest.mark.parametrize(
    "part",
    ["{", "}", "/**", "'", "`", "export ", "interface A {", "/** */", "declare module 'a' {", "(\n", ";"],
)
def test_what_repeats_itself_neither_raises_nor_takes_long(part: str) -> None:
    started = time.process_time()
    list(declarations(part * (100_000 // len(part)), place="a.d.ts", prefix="t"))
    assert time.process_time() - started < 10.0
