"""Usual names of frameworks, libraries, languages and tools (SPEC 3.2, "Candidates").

One framework a line: ``name = other name, other name``; a name alone is one that must not be taken for another. Case and
``-``, ``_``, ``.`` and space don't count: ``next.js`` is also ``Next JS`` and ``nextjs``. A name that ends with ``*`` stands for
all that begin with it. Nothing is listed by which two different things could be meant: such short forms stand at the end.
``[python]`` above a group: what belongs to one language is also called ``python-celery`` or ``celery python``.
"""

NAMES = """
[]
c = c language, ansi c, c89, c99, c11, c17, c23
c++ = cpp, cplusplus, cxx
c# = csharp
f# = fsharp
dotnet = .net, .net core, dotnet core, dotnet sdk
java = jdk, openjdk, java se, core java
javascript = js, ecmascript, vanilla js, vanilla javascript, es6, es2015
typescript = ts, tsc, microsoft/typescript
python = cpython, python lang, python/cpython
go = golang, golang/go
rust = rustlang, rustc, rust-lang/rust
ruby = ruby lang, cruby
php = php lang
kotlin = kotlin lang, kotlin jvm, org.jetbrains.kotlin:*, jetbrains/kotlin
swift = swift lang, apple/swift
scala = scala lang
elixir = elixir lang
erlang = erlang otp, erlang/otp
haskell = ghc
clojure
objective-c = objc
perl = perl5
raku = perl 6
lua
julia = julia lang
dart = dart lang
zig = zig lang
r lang = r language
solidity
html = html5
css = css3
sass = scss, dart-sass, node-sass
less = less css
sql
bash = gnu bash
powershell = pwsh, microsoft powershell
webassembly = wasm
graphql = graphql-js, graphql/graphql-js
markdown

[javascript, typescript]
react = react.js, react-dom, facebook/react, reactjs/react
react native = rn, facebook/react-native, reactnative.dev
preact = preact.js, preactjs/preact
inferno
solid.js = solid, solidjs/solid
svelte = svelte.js, sveltejs/svelte
sveltekit = @sveltejs/kit, sveltejs/kit
vue = vue.js, vuejs/vue, vuejs/core, @vue/*
vueuse = @vueuse/*
vuex
pinia = @pinia/*
vuetify = vuetify.js
vue router = vuejs/router
quasar = quasar framework, @quasar/*
element plus
element ui
ant design = antd, ant-design/ant-design
ant design vue
naive ui
primevue
primereact
primeng
angular = angular.io, angular/angular, @angular/*
angularjs = angular 1, angular 1.x, angular/angular.js
angular material = @angular/material, @angular/cdk, angular cdk
ngrx = @ngrx/*
next.js = next, vercel/next.js, @next/*
nextauth = auth.js, @auth/*
nuxt = nuxt.js, nuxt/nuxt, @nuxt/*
nest.js = nest, nestjs/nest, @nestjs/*
remix = remix.run, @remix-run/*
gatsby = gatsby.js, gatsbyjs/gatsby
astro = astro.build, withastro/astro, @astrojs/*
qwik = @builder.io/qwik
ember = ember.js, emberjs/ember.js
backbone = backbone.js
alpine.js
lit = lit element, lit-html
stencil = stencil.js, @stencil/*
stimulus = stimulus.js, @hotwired/stimulus
hotwire
turbo rails = @hotwired/turbo
turborepo = vercel/turborepo, vercel/turbo
jquery = jquery.js
jquery ui
node = node.js, nodejs/node, @types/node
deno = deno land, denoland/deno
bun = bun.sh, oven-sh/bun
npm = npm cli
yarn = yarnpkg, yarn berry
pnpm = pnpm.io
express = express.js, expressjs/express
koa = koa.js, koajs/koa, @koa/*
fastify = fastify.js, @fastify/*
hapi = hapi.js, @hapi/*
hono = hono.js, honojs/hono, @hono/*
adonis.js = adonis, @adonisjs/*
feathers.js = feathers, @feathersjs/*
strapi = @strapi/*
meteor = meteor.js
sails.js = sails
loopback = loopback 4, @loopback/*
electron = electron.js, electron/electron
tauri = tauri-apps/tauri, @tauri-apps/*
ionic = ionic framework, @ionic/*
capacitor = capacitor.js, @capacitor/*
cordova = apache cordova
expo = @expo/*
react navigation = @react-navigation/*
react router = react-router-dom, @react-router/*, remix-run/react-router
react hook form = rhf
formik
react spring = @react-spring/*
framer motion = motion/react
redux = redux.js, reduxjs/redux
redux toolkit = rtk, @reduxjs/toolkit, reduxjs toolkit, reduxjs/redux-toolkit
rtk query = rtkq
react redux
redux saga
mobx = mobx.js
zustand = pmndrs/zustand
jotai = pmndrs/jotai
recoil = recoil.js
xstate = @xstate/*
tanstack query = react query, @tanstack/react-query, @tanstack/vue-query, @tanstack/svelte-query, @tanstack/solid-query, @tanstack/query-core, @tanstack/angular-query-experimental, tanstack/query, tanstack react query, vue query
tanstack table = react table, @tanstack/react-table, @tanstack/vue-table, @tanstack/table-core, tanstack/table
tanstack router = @tanstack/react-router, @tanstack/router, tanstack/router
tanstack start = @tanstack/react-start
tanstack form = @tanstack/react-form
swr = vercel/swr
apollo client = @apollo/client, apollo graphql client, react apollo
apollo server = @apollo/server, apollo-server-express
urql = @urql/*
relay = react relay, relay.js
trpc = @trpc/*, trpc.io
graphql code generator = graphql codegen, @graphql-codegen/*
material ui = mui, @mui/material, @mui/*, @material-ui/core, @material-ui/*, mui/material-ui
chakra ui = chakra, @chakra-ui/*
radix ui = radix, radix primitives, @radix-ui/*
headless ui = @headlessui/*
shadcn/ui = shadcn, shadcn ui
mantine = @mantine/*
daisyui
react bootstrap
bulma
panda css = panda, @pandacss/*
unocss = @unocss/*
styled components
emotion = emotion.js, @emotion/*
postcss
autoprefixer
storybook = storybook.js, @storybook/*
vite = vite.js, vitejs/vite, vite.dev, @vitejs/*
vitest = @vitest/*
vitepress
webpack = webpack.js, webpack/webpack
rollup = rollup.js, @rollup/*
parcel = parcel.js, parcel bundler, @parcel/*
esbuild = evanw/esbuild
rspack = @rspack/*
swc = @swc/*
babel = babel.js, @babel/*
eslint = eslint.js, @eslint/*, eslint/eslint
typescript eslint = @typescript-eslint/*
prettier = prettier.js
biome = biome.js, @biomejs/*
nx = nx.dev, nrwl, @nx/*, @nrwl/*
lerna
jest = jest.js, @jest/*, jestjs/jest, facebook/jest
jasmine
mocha = mocha.js
chai = chai.js
sinon = sinon.js
karma
enzyme
cypress = cypress.io, @cypress/*
puppeteer = puppeteer-core, google puppeteer
webdriverio = wdio, @wdio/*
testing library = dom testing library, @testing-library/dom
react testing library = @testing-library/react
msw = mock service worker
axios = axios.js
node-fetch
got
superagent
lodash = lodash.js, lodash-es
underscore = underscore.js
moment = moment.js
day.js
date-fns
luxon
rxjs = reactivex/rxjs
immer = immer.js
ramda = ramda.js
zod
yup
joi = @hapi/joi
ajv
class validator
typeorm = typeorm.io
prisma = prisma orm, prisma client, @prisma/*, prisma/prisma
drizzle orm = drizzle, drizzle kit
sequelize = sequelize.js
mikro orm = @mikro-orm/*
knex = knex.js
mongoose = mongoose.js
objection.js
kysely
node postgres = brianc/node-postgres
ioredis
node redis = @redis/client
mysql2
better-sqlite3
socket.io
socket.io client
ws = websockets/ws
bullmq
passport = passport.js
winston
pino = pino.js
commander = commander.js
yargs = yargs.js
inquirer = inquirer.js
nodemon
pm2
dotenv
three.js = mrdoob/three.js
react three fiber = r3f, @react-three/fiber
d3 = d3.js, d3/d3
chart.js
echarts = apache echarts
highcharts = highcharts.js
recharts
plotly.js
leaflet = leaflet.js
mapbox gl = mapbox gl js, mapbox
openlayers = ol
pixi.js = pixi, @pixi/*
phaser = phaser.js
babylon.js = babylon, @babylonjs/*
i18next
react i18next
vue i18n
formatjs = react intl
tiptap = @tiptap/*
quill = quill.js
monaco editor
codemirror = @codemirror/*
discord.js
slate = slate.js

[python]
discord.py
django = django/django, django web framework
django rest framework = drf, django-rest, encode/django-rest-framework
django ninja
django channels
djongo
flask = pallets/flask
flask sqlalchemy
fastapi = tiangolo/fastapi
starlette = encode/starlette
uvicorn = encode/uvicorn
gunicorn = benoitc/gunicorn
hypercorn
tornado = tornadoweb
aiohttp = aio-libs/aiohttp
sanic
bottle = bottle.py
pyramid
falcon = falcon framework, falconry
litestar = starlite
quart
celery = celery.py, celery/celery
dramatiq
redis queue = python-rq, rq-py
sqlalchemy = sqlalchemy orm, sqlalchemy/sqlalchemy
sqlmodel
alembic = alembic migrations, sqlalchemy alembic
peewee = peewee orm
tortoise orm = tortoise
pony orm
psycopg = psycopg 3
psycopg2 = psycopg2-binary
asyncpg
pymongo
motor
mongoengine
pymysql
mysqlclient
redis-py = python redis
pydantic = pydantic/pydantic
pydantic settings
pydantic ai
attrs
marshmallow
requests = python-requests, psf/requests, requests.py
httpx = encode/httpx
urllib3
pytest = pytest-dev/pytest
pytest asyncio
pytest django
py
unittest = python unittest
hypothesis
tox
nox
mypy = python/mypy
pyright
ruff = astral-sh/ruff
black = psf/black
flake8
pylint
poetry = python-poetry
uv = astral uv, astral-sh/uv
pip = pypa/pip
pipenv
conda = anaconda, miniconda
setuptools
hatch = hatchling
numpy = numpy/numpy
pandas = pandas-dev/pandas
polars = pola-rs/polars
scipy
scikit-learn = sklearn
scikit-image = skimage
statsmodels
matplotlib = mpl, pyplot
seaborn
plotly = plotly.py, plotly python
bokeh
altair
dash = plotly dash
streamlit
gradio
jupyter = jupyter notebook
jupyterlab
pytorch = torch, pytorch/pytorch
pytorch lightning = lightning
torchvision
tensorflow = tensorflow/tensorflow
tensorflow.js = tfjs, @tensorflow/*
keras = keras.io
jax = google/jax
xgboost
lightgbm
catboost
transformers = hugging face transformers, huggingface/transformers
diffusers = hugging face diffusers
langchain = langchain-core, langchain python
langchain.js = @langchain/*
langgraph
llamaindex = llama-index-core
openai = openai sdk, openai python
anthropic = anthropic sdk
spacy
nltk
gensim
opencv = cv2, opencv-python, opencv-python-headless, opencv-contrib-python
pillow = pil, python pillow
beautifulsoup4 = beautiful soup, bs4
lxml
scrapy
pyyaml
ruamel.yaml
jinja = jinja2, pallets/jinja
click = pallets/click
typer = tiangolo/typer
rich = python-rich, textualize/rich
textual = textualize/textual
loguru
structlog
python-dotenv
pyjwt
passlib
cryptography = pyca cryptography, pyca/cryptography
paramiko
boto3
botocore
boto
airflow = apache airflow
prefect
dagster
dbt = dbt core, data build tool
dask
ray = ray project, ray-project/ray
pyspark
networkx
sympy
kivy
pyqt = pyqt5, pyqt6
pyside = pyside2, pyside6
tkinter
pygame
pyinstaller
cython
numba
pybind11
python telegram bot
aiogram
faker
factory boy
freezegun
pendulum

[java, kotlin]
spring = spring framework, spring-core, spring-projects/spring-framework, org.springframework:*
spring boot = spring-boot-starter, spring-boot-starter-web, spring-boot-starter-test, spring-boot-starter-parent, spring-projects/spring-boot, org.springframework.boot:*
spring security = org.springframework.security:*, spring-boot-starter-security, org.springframework.boot:spring-boot-starter-security
spring data jpa = spring-boot-starter-data-jpa, org.springframework.boot:spring-boot-starter-data-jpa
spring cloud = org.springframework.cloud:*
spring webflux = webflux, spring-boot-starter-webflux, org.springframework.boot:spring-boot-starter-webflux
spring mvc = spring-webmvc
spring batch
hibernate = hibernate orm, hibernate-core, org.hibernate:*, org.hibernate.orm:*
jpa = java persistence api, jakarta persistence
mybatis = org.mybatis:mybatis
mybatis plus = mybatis-plus-boot-starter, mybatis-plus-spring-boot3-starter, com.baomidou:*
jackson = jackson databind, jackson-core, com.fasterxml.jackson.core:*
gson = google gson
lombok = project lombok, org.projectlombok:lombok
mapstruct
junit = junit jupiter, junit-jupiter-api, org.junit.jupiter:*, junit-team/junit5
junit 4 = junit:junit
mockito = mockito-core, org.mockito:*
testcontainers
maven = apache maven, mvn
gradle = gradle build tool
quarkus = io.quarkus:*
micronaut = micronaut framework, io.micronaut:*
vert.x = eclipse vert.x, io.vertx:*
dropwizard
ktor = io.ktor:*
jetpack compose = compose ui, android compose
android = android sdk
room = android room, androidx.room:*
retrofit = square retrofit, com.squareup.retrofit2:*
okhttp = com.squareup.okhttp3:*
dagger = dagger 2
hilt = dagger hilt
kotlinx coroutines = kotlin coroutines, kotlinx-coroutines-core
guava = google guava
netty
log4j = log4j2, apache log4j
slf4j
logback = logback classic
thymeleaf
flyway = flyway-core
liquibase
jooq
jedis
lettuce
akka
play framework

[dart]
flutter = flutter sdk, flutter/flutter
riverpod = flutter riverpod

[swift]
swiftui
uikit
vapor = vapor swift
alamofire

[c#, csharp, dotnet]
asp.net core = dotnet/aspnetcore, microsoft.aspnetcore.app
asp.net
blazor = blazor wasm, blazor webassembly, blazor server
entity framework core = ef core, microsoft.entityframeworkcore
entity framework = entity framework 6, ef6
dapper
automapper
mediatr
signalr = @microsoft/signalr, asp.net core signalr
xunit = xunit.net
nunit
maui = .net maui, dotnet maui
wpf
xamarin
serilog
newtonsoft.json = json.net
polly

[ruby]
rails = ruby on rails, ror, rails/rails
active record
sinatra
rspec = rspec-core
rspec rails
sidekiq
devise
bundler
hanami

[php]
laravel = laravel framework, laravel/framework, laravel/laravel, illuminate/*
eloquent = laravel eloquent
livewire = laravel livewire, livewire/livewire
lumen = laravel lumen
symfony = symfony framework, symfony/*
doctrine = doctrine orm, doctrine/orm
phpunit = phpunit/phpunit
codeigniter
yii = yii2, yiisoft/yii2
cakephp
slim = slim framework, slim/slim
wordpress
drupal
guzzle = guzzlehttp, guzzlehttp/guzzle
twig
blade

[elixir]
phoenix = phoenix framework, phoenixframework/phoenix
phoenix liveview = live view
ecto
redix

[go, golang]
gin = gin-gonic, gin-gonic/gin, gin web framework, go gin
echo = labstack echo, labstack/echo, go echo
fiber = gofiber, gofiber/fiber
chi = go-chi, go-chi/chi
gorilla mux = gorilla/mux
gorilla websocket = gorilla/websocket
gorm = gorm.io/gorm, gorm.io, go gorm, go-gorm/gorm
ent = entgo, entgo.io/ent, ent/ent
sqlx go = jmoiron/sqlx
sqlc = sqlc.dev
pgx = jackc/pgx
go-redis = redis/go-redis, go-redis/redis
cobra = spf13/cobra
viper = spf13/viper
urfave cli = urfave/cli
zap = uber zap, uber-go/zap, go.uber.org/zap
logrus = sirupsen/logrus
zerolog = rs/zerolog
testify = stretchr/testify
wire = google wire, google/wire
fx = uber fx, uber-go/fx, go.uber.org/fx
beego
iris
hugo = go hugo, gohugoio/hugo
client-go = k8s.io/client-go, kubernetes/client-go

[rust]
actix web = actix, actix/actix-web
axum = tokio-rs/axum
rocket = rocket.rs, rwf2/rocket
warp = seanmonstar/warp
tokio = tokio.rs, tokio-rs/tokio
serde = serde.rs, serde-derive, serde-rs/serde
serde json
diesel = diesel.rs, diesel orm, diesel-rs/diesel
sea orm
sqlx = launchbadge/sqlx
reqwest = seanmonstar/reqwest
hyper = hyperium/hyper
tonic = hyperium/tonic
clap = clap.rs, clap-rs/clap
rayon
anyhow
thiserror
tracing = tokio tracing, tokio-rs/tracing
bevy = bevy engine, bevyengine/bevy
leptos
yew
dioxus
cargo = rust cargo

[]
postgresql = postgres, postgresql db, postgres db, postgresql database, postgres/postgres
alpine linux
selenium = selenium webdriver
playwright = @playwright/test, microsoft playwright, microsoft/playwright
tailwind css = tailwind, tailwindlabs/tailwindcss, @tailwindcss/*
bootstrap = twitter bootstrap, bootstrap css, twbs/bootstrap
htmx = htmx.org
grpc = grpc-io
protobuf = protocol buffers, protoc, google protobuf
apache spark = spark
flink = apache flink
beam = apache beam
unity = unity3d, unity engine
unreal engine = unreal, ue5, ue4
godot = godot engine
composer = php composer
postgis
mysql = mysql server, mysql db
mariadb = mariadb server
sqlite = sqlite3
sql server = mssql, microsoft sql server, ms sql server, t-sql
oracle database = oracle db, oracle sql
plsql = pl/sql
mongodb = mongo
redis = redis server, redis db
valkey
memcached
cassandra = apache cassandra
scylladb = scylla
couchdb = apache couchdb
couchbase
dynamodb = amazon dynamodb, aws dynamodb
neo4j
clickhouse
duckdb
influxdb = influx
timescaledb = timescale
cockroachdb
snowflake
bigquery = google bigquery
elasticsearch = elastic/elasticsearch
opensearch
solr = apache solr
meilisearch
supabase = @supabase/*
firebase = google firebase
firebase admin
firestore = cloud firestore
kafka = apache kafka
kafkajs
kafka python
confluent kafka
rabbitmq
activemq = apache activemq
zeromq = zmq, 0mq
pyzmq
nats = nats.io
pulsar = apache pulsar
mqtt
mosquitto = eclipse mosquitto
hadoop = apache hadoop
hive = apache hive
delta lake
iceberg = apache iceberg
trino
pinecone
chroma = chromadb
qdrant
weaviate
milvus
faiss

docker = docker engine, docker ce, docker cli, docker desktop, dockerfile, moby, moby/moby
docker compose
docker swarm
podman
containerd
buildx = docker buildx
kubernetes = k8s, kubectl, kube, kubernetes/kubernetes
k3s
minikube
helm = helm chart, helm charts
kustomize
istio
argo cd
flux cd
terraform = hashicorp terraform, hashicorp/terraform
terragrunt
opentofu = tofu
pulumi = @pulumi/*
ansible = ansible-core, ansible/ansible
puppet
vagrant
packer
vault = hashicorp vault
consul = hashicorp consul
nomad
jenkins
github actions = gh actions, gha
gitlab ci = gitlab ci cd
circleci
git = git scm
github = github.com
gitlab = gitlab.com
nginx = nginx.org
apache httpd = apache http server, apache2, httpd
caddy = caddy server
traefik
haproxy
envoy = envoy proxy
prometheus = prometheus.io
grafana = grafana labs
loki = grafana loki
jaeger
opentelemetry = otel, @opentelemetry/*
opentelemetry python = opentelemetry-sdk
sentry = sentry.io, sentry sdk, @sentry/*
datadog
logstash
kibana
fluentd
fluent bit
aws = amazon web services
aws cdk = aws-cdk-lib, @aws-cdk/*
aws sdk = @aws-sdk/*
aws lambda
aws cli
serverless framework = serverless
s3 = amazon s3, aws s3
gcp = google cloud, google cloud platform
azure = microsoft azure
cloudflare workers = cf workers
wrangler
vercel = vercel.com
netlify
heroku
linux = gnu linux
systemd
openssl
ffmpeg
cmake
make = gnu make
bazel
conan
vcpkg
gcc
clang
llvm
boost = boost c++, boost libraries
qt = qt framework
gtk = gtk+
googletest = gtest
catch2
opengl
vulkan
webgl
webgpu
websocket
websockets
webrtc
oauth = oauth2, oauth 2.0
openid connect = oidc
jwt = json web token, json web tokens
openapi
swagger = swagger ui
auth0
keycloak
okta
clerk = @clerk/*
stripe = stripe.js, @stripe/*
twilio
slack
slack bolt = @slack/bolt
model context protocol = mcp, @modelcontextprotocol/*
vs code = visual studio code
neovim = nvim
vim
emacs = gnu emacs
excel = microsoft excel
latex
web3.js
ethers.js = ethers
hardhat
foundry
wagmi
spring ai
socket = sockets
"""

AMBIGUOUS = """
tf = tensorflow, terraform
pg = postgresql, node postgres
ng = angular, angularjs
rtl = react testing library
gql = graphql
rq = redis queue, tanstack query
ef = entity framework core, entity framework
cs = c#
rabbit = rabbitmq
elastic = elasticsearch
compose = docker compose, jetpack compose
actions = github actions
material = material ui, angular material
yaml = pyyaml, ruamel.yaml
"""
"""Short forms that stand for whichever of them the cache has entries of, when that is one alone."""
