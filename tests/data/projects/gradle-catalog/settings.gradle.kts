rootProject.name = "catalog"
include(":app")
