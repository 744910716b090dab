//! Programs from Debian, and of other languages, on other locks.
//!
//! All wait by spinning and then parking: with more threads than CPUs, which
//! these have, a fair lock that only spins takes minutes for what takes a
//! second (see docs/run.md).

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{compile, present, succeed, under};

const PARK: &str = "spin-then-park";

#[test]
fn rocksdb_fills_and_reads_while_writing_and_verifies() {
    if !present("db_bench", "rocksdb-tools") || !present("ldb", "rocksdb-tools") {
        return;
    }
    for (lock, keys) in [("mcs", "20000"), ("qspinlock", "10000"), ("clh", "10000")] {
        let folder = tempfile::tempdir().unwrap();
        let keys_argument = format!("--num={keys}");
        let db = format!("--db={}", folder.path().display());
        let printed = succeed(
            under(lock, PARK, "db_bench").arg(&db).args([
                "--benchmarks=fillrandom,readwhilewriting",
                "--threads=4",
                &keys_argument,
            ]),
            300,
        );
        assert!(printed.contains("fillrandom"), "{printed}");
        assert!(printed.contains(&format!("of {keys} found")), "{printed}");
        // This runs without the interposer: what was written is whole.
        let checked = succeed(Command::new("ldb").args([&db, "checkconsistency"]), 300);
        assert!(checked.contains("OK"), "{checked}");
        let verified = succeed(
            Command::new("db_bench").arg(&db).args([
                "--use_existing_db=1",
                "--benchmarks=verifychecksum,readseq",
                &keys_argument,
            ]),
            300,
        );
        assert!(verified.contains("readseq"), "{verified}");
    }
}

/// A server, killed when it goes out of scope.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn memcached_under_load_loses_nothing() {
    if !present("memcached", "memcached") {
        return;
    }
    for lock in ["ticket", "mcs"] {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut command = under(lock, PARK, "memcached");
        command
            .args([
                "-u",
                "root",
                "-l",
                "127.0.0.1",
                "-t",
                "4",
                "-p",
                &port.to_string(),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let _server = Server(command.spawn().unwrap());
        let clients: Vec<_> = (0..4)
            .map(|client| std::thread::spawn(move || load(port, client)))
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        // Each client added 1 to the shared counter 500 times.
        let mut connection = connect(port);
        writeln_crlf(&mut connection, "get shared");
        let mut lines = BufReader::new(connection).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "VALUE shared 0 4");
        assert_eq!(lines.next().unwrap().unwrap(), "2000", "{lock}");
    }
}

fn connect(port: u16) -> TcpStream {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => {
                stream
                    .set_read_timeout(Some(Duration::from_secs(30)))
                    .unwrap();
                stream.set_nodelay(true).unwrap();
                return stream;
            }
            Err(e) => assert!(Instant::now() < end, "memcached does not answer: {e}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn writeln_crlf(stream: &mut TcpStream, line: &str) {
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
}

/// Sets, gets and counts, and checks each answer.
fn load(port: u16, client: usize) {
    let mut stream = connect(port);
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut answer = || {
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    writeln_crlf(&mut stream, "add shared 0 0 1\r\n0");
    let added = answer();
    assert!(added == "STORED" || added == "NOT_STORED", "{added}");
    for i in 0..500 {
        let value = format!("{client}:{i}");
        writeln_crlf(
            &mut stream,
            &format!("set k{client} 0 0 {}\r\n{value}", value.len()),
        );
        assert_eq!(answer(), "STORED");
        writeln_crlf(&mut stream, &format!("get k{client}"));
        assert_eq!(answer(), format!("VALUE k{client} 0 {}", value.len()));
        assert_eq!(answer(), value);
        assert_eq!(answer(), "END");
        writeln_crlf(&mut stream, "incr shared 1");
        assert!(answer().parse::<u64>().is_ok());
    }
}

#[test]
fn stress_ng_stresses_its_mutex() {
    if !present("stress-ng", "stress-ng") {
        return;
    }
    for lock in ["mcs", "ticket"] {
        succeed(
            under(lock, PARK, "stress-ng").args([
                "--mutex",
                "1",
                "--mutex-procs",
                "4",
                "--timeout",
                "1",
                "--temp-path",
                "/tmp",
            ]),
            60,
        );
    }
}

#[test]
fn python_threads_share_a_queue() {
    if !present("python3", "python3") {
        return;
    }
    const PROGRAM: &str = "
import queue, threading
items, out, lock = queue.Queue(maxsize=16), [], threading.RLock()
def work():
    while (item := items.get()) is not None:
        with lock: out.append(item)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for i in range(5000): items.put(i)
for t in threads: items.put(None)
for t in threads: t.join()
assert sorted(out) == list(range(5000))
event = threading.Event()
assert not event.wait(0.01)
import subprocess, sys
assert subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout == b'1\\n'
print('shared')
";
    for lock in ["mcs", "clh"] {
        let printed = succeed(under(lock, PARK, "python3").args(["-c", PROGRAM]), 60);
        assert_eq!(printed, "shared\n", "{lock}");
    }
}

#[test]
fn an_opened_library_has_mutexes_too() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compile(folder.path(), "plugin.c", &["-shared", "-fPIC"]) else {
        return;
    };
    let Some(program) = compile(folder.path(), "opens.c", &[]) else {
        return;
    };
    for lock in ["mcs", "anderson", "ticket"] {
        let printed = succeed(under(lock, PARK, &program).arg(&library), 60);
        assert_eq!(printed, "opened\n", "{lock}");
    }
}

#[test]
fn a_rust_program_counts_and_panics() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rust");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/rust.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    succeed(
        Command::new(rustc)
            .args(["-O", "--edition", "2024", "-A", "warnings", "-o"])
            .arg(&program)
            .arg(source),
        120,
    );
    for lock in ["mcs", "clh", "qspinlock"] {
        assert_eq!(
            succeed(&mut under(lock, PARK, &program), 60),
            "8000\n",
            "{lock}"
        );
    }
}

#[test]
fn standard_input_and_output_are_the_programs() {
    let mut child = under("mcs", PARK, "cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    let mut printed = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut printed)
        .unwrap();
    assert_eq!(printed, "through");
    assert!(child.wait().unwrap().success());
}

/// A filter that ends a process for a call is no reason to end it: the interposer asks in a
/// child, and does without.
#[test]
fn a_call_that_a_filter_forbids_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "sandboxed.c", &[]) else {
        return;
    };
    for lock in ["mcs", "bravo", "phase-fair"] {
        let mut command = under(lock, "barging", &program);
        command.arg(libc::SYS_membarrier.to_string());
        let output = succeed(&mut command, 30);
        assert!(
            output == "count 40000\n" || output.starts_with("no filters"),
            "{output}"
        );
    }
}
