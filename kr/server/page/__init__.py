"""The page for people (rule 8): server-rendered HTML over the operations of ``kr.app``, usable without JavaScript.

``router`` has the addresses, ``views`` what each shows; ``charts`` and ``markdown`` are pure; ``session`` keeps
strangers' forms out.
"""
