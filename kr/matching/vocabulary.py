"""Words that mean one another: short forms, irregular forms, synonyms of software topics (SPEC 3.2)."""

_SHORT = """
abbr abbreviation; acct account; addr address; alg algorithm; algo algorithm; alloc allocation; anno annotation
app application; arch architecture; arg argument; arr array; assoc association; async asynchronous; attr attribute
auto automatic; avg average; a11y accessibility; admin administrator; bg background; bldr builder; bool boolean; btn button
buf buffer; calc calculate; cb callback; cert certificate; cfg configuration; char character; chk check; chkpt checkpoint
clr clear; cmd command; cmp compare; col column; cols column; coll collection; comm communication; concat concatenate
cond condition; conf configuration; config configuration; configure configuration; conn connection; const constant
conv conversion; coord coordinate; cred credential; creds credential; ctor constructor; ctrl control; ctx context
cur current; curr current; cwd directory; db database; dbs database; decl declaration; def definition; del delete
dep dependency; deps dependency; dereg deregister; deser deserialize; dest destination; dev development; dict dictionary
diff difference; dim dimension; dir directory; dist distribution; distro distribution; doc documentation
docs documentation; dom document; drv driver; dst destination; dup duplicate; dupe duplicate; elem element; embed embedding
enc encode; env environment; err error; eval evaluate; evt event; exc exception; exe executable; exec execute; expr expression
ext extension; favs favorite; fg foreground; fk foreignkey; fmt format; fn function; freq frequency; func function
fwd forward; gen generate; hw hardware; i18n internationalization; idx index; img image; impl implement; inc increment
incl include; info information; init initialize; inst instance; int integer; iter iterate; js javascript; k8s kubernetes
kbd keyboard; kw keyword; l10n localization; lang language; lat latitude; len length; lib library; lng longitude
mem memory; mgmt management; mgr manager; misc miscellaneous; msg message; msgs message; mult multiple
multi multiple; mut mutable; nav navigation; net network; nr number; ns namespace; num number; obj object; occ occurrence
ops operation; opt option; opts option; org organization; orig original; param parameter; passwd password
perf performance; perm permission; perms permission; pg postgresql; pic picture; pkg package; pk primarykey; plt plot
postgres postgresql; pref preference; prefs preference; prev previous; prio priority; proc process; prod production
props property; pwd password; py python; qty quantity; rand random; rb ruby; rec record
recv receive; refs reference; reg register; regex regexp; rel relative; repl replace; repo repository
repos repository; resp response; ret return; rev revision; rm remove; rng random; sched schedule; sec second
sel select; seq sequence; sess session; sig signature; specs specification; sql sql; src source
srv server; stat statistic; stats statistic; std standard; stmt statement; str string; struct structure;
subdir subdirectory; svc service; sw software; sym symbol; sync synchronous; sys system; tbl table;
tmp temporary; tmpl template; tpl template; ts typescript; tx transaction; txn transaction; txt text;
ui interface; uid identifier; id identifier; ids identifier; unsub unsubscribe; upd update; usr user; util utility
utils utility; val value; vals value; var variable; vars variable; vec vector; ver version; vid video; vol volume
wrt regarding; ws websocket; max maximum; min minimum; dims dimension; hr hour; hrs hour; mins minute; secs second
"""

_ACRONYMS = """
2fa twofactorauthentication; mfa multifactorauthentication; sso singlesignon; ci continuousintegration
cd continuousdelivery; ssr serversiderendering; csr clientsiderendering; ssg staticsitegeneration; sse serversentevent
spa singlepageapplication; pwa progressivewebapp; hmr hotmodulereplacement; rbac rolebasedaccesscontrol; ttl timetolive
cli commandlineinterface; gui graphicaluserinterface; jwt jsonwebtoken; cdn contentdeliverynetwork
gc garbagecollection; io inputoutput; iac infrastructureascode; rls rowlevelsecurity; crd customresourcedefinition
csrf crosssiterequestforgery; xss crosssitescripting; csp contentsecuritypolicy; vm virtualmachine; p2p peertopeer
m2m manytomany; fts fulltextsearch; ml machinelearning; nlp naturallanguageprocessing; cve commonvulnerability
tdd testdrivendevelopment; bdd behaviordrivendevelopment; ddd domaindrivendesign; cqrs commandqueryresponsibilitysegregation
otp onetimepassword; mtls mutualtls; pr pullrequest; mr mergerequest; wal writeaheadlog; lru leastrecentlyused
acl accesscontrollist; iam identityandaccessmanagement; kv keyvalue; rpc remoteprocedurecall; ast abstractsyntaxtree
cdc changedatacapture; etl extracttransformload; poc proofofconcept; os operatingsystem; wysiwyg whatyouseeiswhatyouget
codegen codegeneration; dnd draganddrop; seo searchengineoptimization; gpu graphicsprocessingunit
"""

_IRREGULAR = """
indices index; indexes index; children child; queries query; matrices matrix; vertices vertex; schemata schema;
criteria criterion; built build; sent send; wrote write; written write; chosen choose; hidden hide; hid hide; ran run
threw throw; thrown throw; broken break; broke break; lost lose; kept keep; bound bind; drawn draw; drew draw; fed feed
found find; given give; gave give; gone go; went go; grown grow; grew grow; held hold; known know; knew know; laid lay
led lead; made make; meant mean; met meet; paid pay; said say; saw see; seen see; sold sell; spent spend
stolen steal; stuck stick; taken take; took take; taught teach; told tell; thought think; understood understand
woken wake; woke wake; won win; begun begin; began begin; caught catch; frozen freeze; froze freeze; forgotten forget
overridden override; overrode override; overwritten overwrite; rewritten rewrite; rebuilt rebuild; reran rerun
removal remove; retrieval retrieve; approval approve; renewal renew; disposal dispose; traversal traverse; arrival arrive
referral refer; dismissal dismiss; proposal propose; reversal reverse; withdrawal withdraw; refusal refuse
submission submit; transmission transmit; omission omit; admission admit; conversion convert
inversion invert; expansion expand; suspension suspend; decision decide; division divide
collision collide; exclusion exclude; inclusion include; repetition repeat; analysis analyze; analyses analyze
resolution resolve; evolution evolve; reduction reduce; deduction deduce; introduction introduce; destruction destroy
reception receive; perception perceive; absorption absorb; redemption redeem; assumption assume; consumption consume
resumption resume; retention retain; contention contend; intention intend; recursion recurse; succession succeed
concession concede; acquisition acquire; composition compose; decomposition decompose; definition define; addition add
recognition recognize; competition compete; multiplication multiply; discovery discover; recovery recover
delivery deliver; loss lose; explosion explode; invasion invade; persuasion persuade; erosion erode
synthesis synthesize; choice choose; growth grow; failure fail; exposure expose; deletion delete;
colour color; behaviour behavior; licence license; centre center; analyse analyze; grey gray; catalogue catalog
dialogue dialog; cancelled cancel; cancelling cancel; cancellation cancel; labelled label; labelling label
modelling model; modelled model; programme program; fulfil fulfill; artefact artifact; judgement judgment; cheque check
defence defense; favourite favorite; neighbour neighbor; organisation organization; serialise serialize
registration register; registrations register; truncation truncate; explanation explain; proof prove; maintenance maintain; acceptance accept; performant performance
"""

_SYNONYMS = """
deactivate disable; inactivate disable; disallow disable; activate enable; folder directory; signin login; logon login
signon login; signout logout; logoff logout; signup register; paging pagination; paged pagination; paginate pagination
erase delete; remove delete; huge large; big large; retrieve fetch; photo picture; quit exit; terminate stop; halt stop
maximal maximum; minimal minimum; biggest maximum; largest maximum; smallest minimum; hotkey shortcut
simultaneous concurrent; initially initial; repeated repeat; customize custom; customise custom; customization custom
customizable custom; randomize random; parallelize parallel; parallelization parallel
"""


def _read(*tables: str) -> dict[str, str]:
    pairs = (pair.split() for table in tables for line in table.splitlines() for pair in line.split(";"))
    return {pair[0]: pair[1] for pair in pairs if pair and pair[0] != pair[1]}


SHORT_FORMS = _read(_SHORT, _ACRONYMS, _IRREGULAR)
"""What stands for what, as words in full; a phrase is written as one word."""

SYNONYMS = _read(_SYNONYMS)
"""Words that are interchangeable in a topic, to be looked up by the base form."""

ALTERNATIVES = {
    "auth": ("authentication", "authorization"),
    "dev": ("development", "developer"),
    "ops": ("operations", "operators"),
    "req": ("request", "requirement"),
    "res": ("response", "resource", "result"),
    "desc": ("description", "descending"),
    "pos": ("position", "point"),
    "spec": ("specification", "special"),
    "loc": ("location", "locale"),
    "pub": ("public", "publish"),
    "sub": ("subscribe", "subscription"),
    "temp": ("temporary", "temperature"),
    "prop": ("property", "proportional"),
    "mod": ("module", "modification"),
    "ref": ("reference", "refresh"),
}
"""Short forms that stand for one of several words, as the other topic has it."""
