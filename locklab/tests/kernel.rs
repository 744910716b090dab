//! Boots a distribution kernel with the lab's first program, and checks that
//! counts repeat. `cargo xtask test` unpacks Debian's cloud kernel into
//! `target/guest-kernel`; without it, QEMU or the plugin, these are
//! skipped.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Guest {
    image: PathBuf,
    modules: PathBuf,
    plugin: PathBuf,
}

fn skip(why: &str) -> Option<Guest> {
    println!("skipped: {why}");
    None
}

fn guest() -> Option<Guest> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let first = |folder: &str, start: &str| {
        let entries = std::fs::read_dir(root.join("guest-kernel").join(folder)).ok()?;
        entries.flatten().map(|entry| entry.path()).find(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(start))
        })
    };
    let (Some(image), Some(modules)) = (first("boot", "vmlinuz"), first("lib/modules", "")) else {
        return skip("no guest kernel in target/guest-kernel (cargo xtask test unpacks one)");
    };
    let plugin = root.join("release/liblocklab_qemu_plugin.so");
    if !plugin.is_file() {
        return skip("the QEMU plugin is not built (cargo build --release -p locklab-qemu-plugin)");
    }
    if Command::new("qemu-system-x86_64")
        .arg("--version")
        .output()
        .is_err()
    {
        return skip("qemu-system-x86_64 is missing (apt-get install qemu-system-x86)");
    }
    Some(Guest {
        image,
        modules,
        plugin,
    })
}

impl Guest {
    fn boot(&self, arguments: &[&str]) -> Output {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel-cache");
        Command::new(env!("CARGO_BIN_EXE_locklab"))
            .args([
                "kernel", "boot", "--set", "tcg=true", "--json", "--quiet", "--cache",
            ])
            .arg(cache)
            .args(["--set", &format!("modules={}", self.modules.display())])
            .arg(&self.image)
            .args(arguments)
            .env("LOCKLAB_QEMU_PLUGIN", &self.plugin)
            .output()
            .unwrap()
    }

    fn measured(&self, arguments: &[&str]) -> Value {
        let output = self.boot(arguments);
        assert!(output.status.success(), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["provenance"], "model");
        document["measured"].clone()
    }
}

#[test]
fn fstat_and_context_switch_count_the_same_twice() {
    let Some(guest) = guest() else { return };
    for (workload, operations, per_unit) in [
        ("fstat", "2000", 300..3000),
        ("context-switch", "1000", 1000..20_000),
    ] {
        let workload_of_two = format!("{workload}:2");
        let operations = format!("operations={operations}");
        let arguments = [
            "--workload",
            &workload_of_two,
            "--set",
            &operations,
            "--processor",
            "zen-3",
        ];
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(|| guest.measured(&arguments));
            (guest.measured(&arguments), other.join().unwrap())
        });
        assert_eq!(one["counts"], two["counts"], "{workload}");
        assert_eq!(one["frontend"], two["frontend"], "{workload}");
        assert_eq!(one["elapsed_ns"], two["elapsed_ns"], "{workload}");
        if workload == "context-switch" {
            let events = &one["frontend"]["kernel"]["events"];
            let changes = events["address_space_changes"].as_u64().unwrap();
            assert!(changes >= one["work"].as_u64().unwrap(), "{events}");
        }
        let kernel = one["counts"]["kernel"]["instructions"].as_u64().unwrap();
        let each = kernel / one["work"].as_u64().unwrap();
        assert!(
            per_unit.contains(&each),
            "{workload}: {each} kernel instructions a unit"
        );
    }
}

#[test]
fn a_server_with_a_cpu_of_its_own_counts_the_same_twice() {
    let Some(guest) = guest() else { return };
    for program in ["/usr/sbin/nginx", "/usr/bin/ab"] {
        if !Path::new(program).is_file() {
            println!("skipped: {program} is missing (apt-get install nginx-light apache2-utils)");
            return;
        }
    }
    let counted = |vcpus| {
        let churn = ["--workload", "nginx-churn", "--set", "operations=40"];
        let measured = guest.measured(&[&churn[..], &["--vcpus", vcpus, "--next-line"]].concat());
        measured["counts"].clone()
    };
    let [all, one, two] = std::thread::scope(|scope| {
        let runs = ["1", "2", "2"].map(|vcpus| scope.spawn(move || counted(vcpus)));
        runs.map(|run| run.join().unwrap())
    });
    assert_eq!(one, two);
    for (mode, each) in [("user", 2000..40_000), ("kernel", 5000..200_000)] {
        let instructions = |of: &Value| of[mode]["instructions"].as_u64().unwrap();
        // The client has the rest.
        let server = instructions(&one);
        assert!(server < instructions(&all) * 3 / 4, "{mode}: {server}");
        assert!(each.contains(&(server / 40)), "{mode}: {server}");
    }
}

#[test]
fn a_guest_that_fails_gives_its_last_lines_and_no_counts() {
    let Some(guest) = guest() else { return };
    // There is no such first program: the kernel panics.
    let output = guest.boot(&["--workload", "boot", "--set", "cmdline=rdinit=/none"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(output.stdout.is_empty());
    assert!(error.contains("panicked"), "{error}");
    assert!(error.contains("last lines:\n"), "{error}");
    // One that does not end in time.
    let output = guest.boot(&["--workload", "boot", "--set", "boot_limit=1"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("did not end within 1 s"), "{error}");
}

#[test]
fn arguments_that_make_no_sense_are_said() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_locklab"))
            .args(["kernel"])
            .args(arguments)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, error) = run(&["boot", "/no/such/kernel"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("no kernel /no/such/kernel"), "{error}");
    let compare = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locklab"));
        let output = command.arg("compare").args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), error)
    };
    let (code, error) = compare(&["/no/such/file.toml"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("cannot read /no/such/file.toml"), "{error}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/inline-unlock.toml");
    let file = file.to_str().unwrap();
    let (code, error) = compare(&[file, "--variant", "icc"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("no variant 'icc'"), "{error}");
    let (code, error) = compare(&[file, "--pairs", "0"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("0 pairs show nothing"), "{error}");
    let (code, error) = compare(&[file, "--set", "tcg=true", "--vcpus", "4"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("4 vCPUs needs KVM"), "{error}");
    let (code, error) = compare(&[file, "--vcpus", "0"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("start at 1"), "{error}");
}
