#!/bin/sh
# The null test of `locklab judge`: five programs of benchmarks are built once and run many
# times each, in turn, so that every difference between two of their files is noise. What
# crates/measure/samples/tests/files/null.rs counts of them is then false alarms. This needs
# g++, libbenchmark-dev, go, a JDK, mvn, cargo, and Python with venv.
#
#     crates/measure/samples/tests/null.sh FOLDER [RUNS] [PROGRAM...]
set -eu
mkdir -p "$1" && cd "$1"
there=$PWD runs=${2:-20}
shift
[ $# -eq 0 ] || shift
programs=${*:-pytest go google criterion jmh}

pytest_build() {
    python3 -m venv venv && venv/bin/pip install -q pytest-benchmark
    cat > test_null.py <<'END'
import hashlib, json
def test_sum(benchmark): benchmark(sum, range(3000))
def test_sort(benchmark): benchmark(sorted, [i * 7919 % 5003 for i in range(3000)])
def test_text(benchmark): benchmark("".join, ["a"] * 5000)
def test_json(benchmark): benchmark(json.dumps, {str(i): i for i in range(300)})
def test_hash(benchmark): benchmark(lambda: hashlib.sha256(b"x" * 20000).digest())
END
}
pytest_run() {
    venv/bin/python -m pytest -q test_null.py --benchmark-max-time=0.15 --benchmark-min-rounds=20 \
        --benchmark-json="$1"
}

go_build() {
    mkdir -p go
    cat > go/go.mod <<'END'
module example.org/null
go 1.21
END
    cat > go/null_test.go <<'END'
package null
import ("crypto/sha256"; "sort"; "strconv"; "strings"; "testing")
func BenchmarkHash(b *testing.B) { d := make([]byte, 20000); for i := 0; i < b.N; i++ { sha256.Sum256(d) } }
func BenchmarkSort(b *testing.B) { for i := 0; i < b.N; i++ { d := make([]int, 2000); for j := range d { d[j] = j * 7919 % 2003 }; sort.Ints(d) } }
func BenchmarkMap(b *testing.B) { for i := 0; i < b.N; i++ { m := map[int]int{}; for j := 0; j < 500; j++ { m[j] = j } } }
func BenchmarkText(b *testing.B) { for i := 0; i < b.N; i++ { var s strings.Builder; for j := 0; j < 500; j++ { s.WriteString(strconv.Itoa(j)) } } }
END
    (cd go && go test -c -o null.test)
}
go_run() { go/null.test -test.bench . -test.count 10 -test.benchtime 20ms -test.run '^$' > "$1"; }

google_build() {
    cat > null.cpp <<'END'
#include <benchmark/benchmark.h>
#include <algorithm>
#include <map>
#include <string>
#include <vector>
static void Sort(benchmark::State& s) { for (auto _ : s) { std::vector<int> d(2000); for (int j = 0; j < 2000; ++j) d[j] = j * 7919 % 2003; std::sort(d.begin(), d.end()); benchmark::DoNotOptimize(d.data()); } }
static void Map(benchmark::State& s) { for (auto _ : s) { std::map<int, int> m; for (int j = 0; j < 500; ++j) m[j * 7919 % 503] = j; benchmark::DoNotOptimize(m.size()); } }
static void Text(benchmark::State& s) { for (auto _ : s) { std::string t; for (int j = 0; j < 500; ++j) t += std::to_string(j); benchmark::DoNotOptimize(t.data()); } }
static void Sum(benchmark::State& s) { std::vector<double> d(s.range(0), 1.5); for (auto _ : s) { double x = 0; for (double y : d) x += y; benchmark::DoNotOptimize(x); } }
BENCHMARK(Sort); BENCHMARK(Map); BENCHMARK(Text); BENCHMARK(Sum)->Arg(1000)->Arg(100000);
BENCHMARK_MAIN();
END
    g++ -O2 null.cpp -lbenchmark -lpthread -o null-google
}
google_run() {
    ./null-google --benchmark_repetitions=10 --benchmark_min_time=0.02 --benchmark_out="$1" \
        --benchmark_out_format=json
}

criterion_build() {
    mkdir -p criterion/benches criterion/src && : > criterion/src/lib.rs
    cat > criterion/Cargo.toml <<'END'
[package]
name = "null"
version = "0.0.0"
edition = "2021"
[dev-dependencies]
criterion = { version = "0.5", default-features = false, features = ["cargo_bench_support"] }
[[bench]]
name = "null"
harness = false
[workspace]
END
    cat > criterion/benches/null.rs <<'END'
use criterion::{black_box, criterion_group, criterion_main, Criterion};
use std::collections::{BTreeMap, HashMap};
fn all(c: &mut Criterion) {
    c.bench_function("sort", |b| b.iter(|| { let mut d: Vec<u32> = (0..2000u32).map(|j| j * 7919 % 2003).collect(); d.sort_unstable(); black_box(d) }));
    c.bench_function("hash", |b| b.iter(|| { let m: HashMap<u32, u32> = (0..500).map(|j| (j, j)).collect(); black_box(m) }));
    c.bench_function("tree", |b| b.iter(|| { let m: BTreeMap<u32, u32> = (0..500u32).map(|j| (j * 7919 % 503, j)).collect(); black_box(m) }));
    c.bench_function("text", |b| b.iter(|| (0..500).map(|j| j.to_string()).collect::<String>()));
}
criterion_group! { name = benches; config = Criterion::default().without_plots().warm_up_time(std::time::Duration::from_millis(50)).measurement_time(std::time::Duration::from_millis(250)).sample_size(20); targets = all }
criterion_main!(benches);
END
    (cd criterion && cargo bench --no-run --bench null 2>&1) | sed -n "s/.*(\(target.*\))/\1/p" > bench
}
# A folder of criterion becomes one file, as `cargo criterion --message-format json` writes it.
criterion_run() {
    rm -rf criterion/out && (cd criterion && CRITERION_HOME=out "./$(cat ../bench)" --bench --noplot)
    for sample in criterion/out/*/new/sample.json; do
        name=$(basename "$(dirname "$(dirname "$sample")")")
        sed "s/^{\"sampling_mode\":\"[A-Za-z]*\",\"iters\"/{\"reason\":\"benchmark-complete\",\"id\":\"$name\",\"unit\":\"ns\",\"iteration_count\"/; s/\"times\"/\"measured_values\"/" "$sample"
        echo
    done > "$1"
}

jmh_build() {
    mkdir -p jmh/src/main/java/n
    cat > jmh/pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>n</groupId><artifactId>n</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties>
<dependencies>
<dependency><groupId>org.openjdk.jmh</groupId><artifactId>jmh-core</artifactId><version>1.37</version></dependency>
<dependency><groupId>org.openjdk.jmh</groupId><artifactId>jmh-generator-annprocess</artifactId><version>1.37</version><scope>provided</scope></dependency>
</dependencies></project>
END
    cat > jmh/src/main/java/n/Null.java <<'END'
package n;
import java.util.*;
import org.openjdk.jmh.annotations.*;
@BenchmarkMode(Mode.AverageTime) @OutputTimeUnit(java.util.concurrent.TimeUnit.NANOSECONDS)
public class Null {
    @Benchmark public int[] sort() { int[] d = new int[2000]; for (int j = 0; j < d.length; j++) d[j] = j * 7919 % 2003; Arrays.sort(d); return d; }
    @Benchmark public Map<Integer, Integer> map() { Map<Integer, Integer> m = new HashMap<>(); for (int j = 0; j < 500; j++) m.put(j, j); return m; }
    @Benchmark public String text() { StringBuilder s = new StringBuilder(); for (int j = 0; j < 500; j++) s.append(j); return s.toString(); }
}
END
    (cd jmh && mvn -q -B compile dependency:build-classpath -Dmdep.outputFile=path)
}
jmh_run() {
    java -cp "jmh/target/classes:$(cat jmh/path)" org.openjdk.jmh.Main -f 1 -wi 2 -w 100ms -i 10 \
        -r 50ms -rf json -rff "$1"
}

for program in $programs; do
    echo "building for $program"
    "${program}_build" > "$program.log" 2>&1
    mkdir -p "files/$program"
done
run=1
while [ "$run" -le "$runs" ]; do
    for program in $programs; do
        "${program}_run" "$there/files/$program/$(printf %02d "$run")" > "$program.log" 2>&1
    done
    run=$((run + 1))
done
