val coroutines = "1.8.0"
val coilVersion by extra("2.6.0")

dependencies {
    implementation(libs.ktor.core)
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-core:$coroutines")
    implementation("com.squareup.okio:okio:${property("okioVersion")}")
    implementation("io.coil-kt:coil:$coilVersion")
    testImplementation(group = "io.mockk", name = "mockk", version = "1.13.10")
}
