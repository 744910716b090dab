//! `nginx-churn`: one nginx worker on one CPU, `ab` on another, a new
//! connection for each request: the kernel's connection set-up and tear-down
//! beside a large user program.
//!
//! Install: nginx-light, apache2-utils. A run starts an nginx in a folder and
//! on a port of its own, waits until the port answers, lets ab make its
//! requests, and ends it. Requests a second decide. Invalid: a request that
//! failed or was not answered by 2xx, an nginx that does not start or end.

use super::output_metric;
use super::spec::WorkloadSpec;
use super::workload::{Workload, program};
use crate::fault::Fault;
use crate::launcher::{Launcher, Server};
use crate::output::excerpt;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::metric::ELAPSED;
use locklab_host::error::Error;
use nix::sys::signal::Signal;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Concurrent connections, as in the report on inlining unlock.
const CONNECTIONS: u64 = 80;

pub(super) struct NginxChurn {
    requests: u64,
    port: Option<u16>,
}

impl NginxChurn {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        Self {
            requests: spec.scaled(20_000, CONNECTIONS),
            port: spec.port,
        }
    }
}

/// Returns the report's configuration: one worker, `return 200`, no logs.
fn configuration(folder: &Path, port: u16) -> String {
    let f = folder.display();
    format!(
        "daemon off;
worker_processes 1;
pid {f}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_timeout 0;
    client_body_temp_path {f}/body;
    proxy_temp_path {f}/proxy;
    fastcgi_temp_path {f}/fastcgi;
    uwsgi_temp_path {f}/uwsgi;
    scgi_temp_path {f}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 200; }}
    }}
}}
"
    )
}

impl NginxChurn {
    fn free_port(&self) -> Result<u16, Error> {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port.unwrap_or(0)));
        match (self.port, bound.and_then(|listener| listener.local_addr())) {
            (_, Ok(address)) => Ok(address.port()),
            (Some(port), Err(e)) => Err(Error::Usage(format!(
                "port {port} cannot be used ({e}); leave it out, and a free one is taken"
            ))),
            (None, Err(e)) => Err(Error::Usage(format!("there is no free port: {e}"))),
        }
    }

    /// Waits until the server answers, or has ended.
    fn wait_for(port: u16, server: &Server, launcher: &Launcher) -> Result<(), Fault> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let end = Instant::now() + launcher.limit;
        loop {
            if server.running.has_ended() {
                return Err(Fault::Failed(format!(
                    "nginx did not start: {}",
                    excerpt(&server.standard_error())
                )));
            }
            if TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok() {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(Fault::Failed(format!(
                    "nginx did not answer on port {port}"
                )));
            }
            launcher.sleep(Duration::from_millis(5))?;
        }
    }
}

impl Workload for NginxChurn {
    fn about(&self) -> String {
        format!(
            "ab -n {} -c {CONNECTIONS}, no keep-alive, against one nginx worker that answers \
             'return 200'.",
            self.requests
        )
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        let (server, client) = (launcher.cpu(0), launcher.cpu(1));
        let shared = if server == client {
            " (one CPU for both: the client's work is in every figure)"
        } else {
            ""
        };
        vec![
            (
                "Server".into(),
                format!("nginx on CPU {}", locklab_host::topology::ranges(&server)),
            ),
            (
                "Client".into(),
                format!(
                    "ab on CPU {}{shared}",
                    locklab_host::topology::ranges(&client)
                ),
            ),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::higher("requests", "req/s", Source::Output),
            Metric::lower("latency-mean", "ms", Source::Output),
            Metric::lower("latency-p99", "ms", Source::Output),
            Metric::lower(ELAPSED, "s", Source::Output),
        ]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        for subject in subjects {
            program("nginx", "nginx-light", subject)?;
        }
        program("ab", "apache2-utils", &Subject::default())?;
        if self.port.is_some() {
            self.free_port()?;
        }
        Ok(())
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let folder = launcher.fresh("nginx")?;
        let port = self.free_port()?;
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(&folder, port))
            .map_err(|e| Fault::Unrunnable(format!("cannot write {}: {e}", file.display())))?;
        let text = |path: &Path| path.display().to_string();
        let arguments =
            ["-e", "stderr", "-p", &text(&folder), "-c", &text(&file)].map(str::to_owned);
        let mut launch = launcher.launch(subject, "nginx", &arguments, &launcher.cpu(0))?;
        launch.folder.clone_from(&folder);
        let server = launcher.serve(&launch)?;
        Self::wait_for(port, &server, launcher)?;
        let arguments = [
            "-q".to_owned(),
            "-n".into(),
            self.requests.to_string(),
            "-c".into(),
            CONNECTIONS.min(self.requests).to_string(),
            format!("http://127.0.0.1:{port}/"),
        ];
        let client_cpu = launcher.cpu(1);
        let client = launcher.tool("ab", &arguments, &client_cpu)?.out;
        server.running.ask(Signal::SIGTERM);
        let server = server.wait(launcher.limit, &launcher.interrupt)?;
        server.check()?;
        let count =
            |name: &str| output_metric::find(name, &format!(r"(?m)^{name}:\s+([0-9.]+)"), &client);
        let (complete, failed) = (count("Complete requests")?, count("Failed requests")?);
        // ab leaves this line out if there are none.
        let refused = count("Non-2xx responses").unwrap_or(0.0);
        if failed != 0.0 || refused != 0.0 || complete != self.requests as f64 {
            return Err(Fault::CheckFailed(format!(
                "{failed} requests failed, {refused} were not answered by 2xx, and {complete} of \
                 {} were completed",
                self.requests
            )));
        }
        let mut figures = server.figures();
        let mut keep = |name: &str, value: f64| figures.insert(name.into(), value);
        keep("requests", count("Requests per second")?);
        keep(ELAPSED, count("Time taken for tests")?);
        keep(
            "latency-mean",
            output_metric::find(
                "latency",
                r"Time per request:\s+([0-9.]+) \[ms\] \(mean\)",
                &client,
            )?,
        );
        keep(
            "latency-p99",
            output_metric::find("99%", r"(?m)^\s*99%\s+([0-9]+)", &client)?,
        );
        Ok(figures)
    }
}
