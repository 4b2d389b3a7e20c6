"""The page for people (rule 8): server-rendered HTML over the operations of ``kr.app``, usable without JavaScript.

``router`` has the addresses, ``views`` what each shows, ``rendering`` how it looks as HTML.
"""
