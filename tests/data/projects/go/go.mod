module example.org/shop

go 1.22

require github.com/gin-gonic/gin v1.9.1

require (
	github.com/jackc/pgx/v5 v5.5.5
	gopkg.in/yaml.v3 v3.0.1
	github.com/bytedance/sonic v1.11.3 // indirect
	example.org/local v0.0.0
	golang.org/x/net v0.21.0 // indirect
)

replace example.org/local => ./local

replace golang.org/x/net v0.21.0 => golang.org/x/net v0.23.0

exclude github.com/old/thing v1.0.0
