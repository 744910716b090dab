//! A Slurm cluster of one node on the loopback interface, in a scratch folder:
//! its own munge key, ports and spool. No service of the system is touched,
//! and what was started ends with it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Programs that a cluster is made of, and Debian's packages that have them.
const PROGRAMS: [(&str, &str); 4] = [
    ("munged", "munge"),
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("sbatch", "slurm-client"),
];

pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    /// Starts it, and waits until its node is idle. Where there is
    /// no Slurm, says in one line which packages to install.
    pub(crate) fn start() -> Option<Self> {
        let missing = PROGRAMS
            .iter()
            .filter(|(program, _)| found(program).is_none());
        let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
        if !packages.is_empty() {
            println!(
                "skipped: no Slurm here; apt-get install {}",
                packages.join(" ")
            );
            return None;
        }
        // Sockets have short names.
        let folder = tempfile::Builder::new().prefix("slurm").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["spool", "state"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let mut key = vec![0; 1024];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut key)
            .unwrap();
        std::fs::write(at("munge.key"), key).unwrap();
        std::fs::set_permissions(at("munge.key"), PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(at("slurm.conf"), configuration(folder.path())).unwrap();
        let mut cluster = Self {
            folder,
            daemons: Vec::new(),
        };
        let place = cluster.folder.path().display().to_string();
        cluster.daemon(
            Command::new(found("munged").unwrap())
                .args(["--foreground", "--force"])
                .arg(format!("--socket={place}/munge.socket"))
                .arg(format!("--key-file={place}/munge.key"))
                .arg(format!("--pid-file={place}/munge.pid"))
                .arg(format!("--seed-file={place}/munge.seed")),
            "munged",
        );
        let socket = PathBuf::from(format!("{place}/munge.socket"));
        wait("munged", || socket.exists());
        cluster.daemon(
            Command::new(found("slurmctld").unwrap()).args(["-D", "-c"]),
            "slurmctld",
        );
        let mut node = Command::new(found("slurmd").unwrap());
        cluster.daemon(node.args(["-D", "-c", "-N", "localhost"]), "slurmd");
        wait("the node", || {
            cluster.says("sinfo", &["-h", "-o", "%T"]).trim() == "idle"
        });
        Some(cluster)
    }

    fn daemon(&mut self, command: &mut Command, name: &str) {
        let log = std::fs::File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        let child = self
            .environment(command)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemons.push(child);
    }

    /// Returns a command that speaks to this cluster.
    pub(crate) fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf"))
    }

    /// Returns what one of Slurm's commands says.
    pub(crate) fn says(&self, program: &str, words: &[&str]) -> String {
        let output = self.run(program, words);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn run(&self, program: &str, words: &[&str]) -> Output {
        self.environment(Command::new(program).args(words))
            .output()
            .unwrap()
    }

    /// Tasks in the queue by state: job, task, state.
    pub(crate) fn queue(&self) -> Vec<(String, String, String)> {
        let said = self.says("squeue", &["-h", "-r", "-o", "%F %K %T"]);
        said.lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace().map(str::to_owned);
                Some((words.next()?, words.next()?, words.next()?))
            })
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The node before its controller, that before the keys.
        while let Some(mut daemon) = self.daemons.pop() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let begun = Instant::now();
            while daemon.try_wait().is_ok_and(|status| status.is_none()) {
                if begun.elapsed() > Duration::from_secs(10) {
                    let _ = daemon.kill();
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Describes sixteen CPUs, whatever there are: tasks mostly wait for Slurm here.
fn configuration(folder: &Path) -> String {
    let place = folder.display();
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let user = user.trim();
    let [controller, node] = [(); 2].map(|()| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    });
    format!(
        "ClusterName=locklab\nSlurmctldHost=localhost(127.0.0.1)\nSlurmUser={user}\n\
         SlurmdUser={user}\nAuthType=auth/munge\nCredType=cred/munge\n\
         AuthInfo=socket={place}/munge.socket\nSlurmctldPort={controller}\nSlurmdPort={node}\n\
         StateSaveLocation={place}/state\nSlurmdSpoolDir={place}/spool\n\
         SlurmctldPidFile={place}/slurmctld.pid\nSlurmdPidFile={place}/slurmd.pid\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
         SwitchType=switch/none\nJobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\nJobCompType=jobcomp/none\n\
         SchedulerType=sched/backfill\nSchedulerParameters=batch_sched_delay=0,sched_interval=1,\
         bf_interval=1\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMaxArraySize=257\n\
         JobRequeue=0\nKillWait=2\nReturnToService=2\nSlurmdParameters=config_overrides\n\
         NodeName=localhost NodeAddr=127.0.0.1 CPUs=16 Features=alpha,beta State=UNKNOWN\n\
         PartitionName=main Nodes=localhost Default=YES MaxTime=INFINITE State=UP\n"
    )
}

/// Returns where a program is: daemons are not on everybody's path.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path
        .split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"]);
    folders
        .map(|folder| Path::new(folder).join(program))
        .find(|path| path.exists())
}

/// Waits for what must come; a test that fails here says for what.
pub(crate) fn wait(what: &str, come: impl FnMut() -> bool) {
    assert!(
        comes(Duration::from_secs(240), come),
        "{what} did not come within four minutes"
    );
}

/// Returns whether it comes within a time.
pub(crate) fn comes(within: Duration, mut come: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !come() {
        if begun.elapsed() > within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}
