"""The page for people (SPEC 8): server-rendered HTML over the operations of ``kr.app``, usable without JavaScript.

``router`` has the addresses, ``views`` what each shows; ``charts``, ``markdown`` and ``texts`` are pure; ``session`` keeps
strangers' forms out.
"""
