//! Metrics over OTLP/HTTP, as JSON.
//!
//! A request is tried three times if the receiver is busy (429, 502, 503, 504) or cannot be reached; then the
//! snapshot is given up and counted as failed. Its numbers are cumulative, so that the next one replaces it.
//!
//! Source: opentelemetry-proto 1.x (JSON mapping), OTLP specification 1.x, "OTLP/HTTP".

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::{Value, json};

use super::snapshot::{Kind, Snapshot};

const TIMEOUT: Duration = Duration::from_secs(3);
const TRIES: u32 = 3;
const MAX_ANSWER: u64 = 1 << 16;

/// Where to post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    host: String,
    port: u16,
    path: String,
}

impl Target {
    /// Reads `http://HOST[:PORT][/PATH]`; the default path is /v1/metrics.
    pub fn parse(url: &str) -> Result<Target, String> {
        let wrong =
            || format!("otlp: expected a URL such as http://127.0.0.1:4318/v1/metrics, found {url:?}");
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (place, path) = rest.split_once('/').map_or((rest, ""), |(place, path)| (place, path));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (place, 4318),
        };
        // Nothing in it may end a line of the request.
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !plain(rest) {
            return Err(wrong());
        }
        let path = if path.is_empty() { "v1/metrics" } else { path };
        Ok(Target { host: host.to_owned(), port, path: format!("/{path}") })
    }

    /// Posts a snapshot. Error: it was not accepted.
    pub fn send(&self, snapshot: &Snapshot) -> Result<(), String> {
        let body = request(snapshot).to_string();
        let mut last = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(100 << attempt));
            }
            match self.post(&body) {
                Ok(status) if (200..300).contains(&status) => return Ok(()),
                Ok(status @ (429 | 502 | 503 | 504)) => last = format!("status {status}"),
                Ok(status) => return Err(format!("status {status}")),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }

    fn post(&self, body: &str) -> io::Result<u16> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let address = (host, self.port).to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.path,
            self.host,
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        // Leaves nothing unread: the receiver would see a reset.
        let _ = io::copy(&mut (&mut stream).take(MAX_ANSWER), &mut io::sink());
        let status = answer.get(9..).and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
        status.ok_or_else(|| io::Error::other("the answer is not HTTP"))
    }
}

/// The body: ExportMetricsServiceRequest.
pub fn request(snapshot: &Snapshot) -> Value {
    let attribute = |(name, value): &(&str, String)| json!({"key": name, "value": {"stringValue": value}});
    let metric = |metric: &super::snapshot::Metric| {
        let started_ns =
            if metric.kind == Kind::ProcessCounter { snapshot.process_ns } else { snapshot.started_ns };
        let points: Vec<Value> = metric
            .points
            .iter()
            .map(|(labels, value)| {
                json!({
                    "attributes": labels.iter().map(attribute).collect::<Vec<_>>(),
                    "startTimeUnixNano": started_ns.to_string(),
                    "timeUnixNano": snapshot.time_ns.to_string(),
                    "asDouble": value,
                })
            })
            .collect();
        let data = match metric.kind {
            // 2: cumulative.
            Kind::Counter | Kind::ProcessCounter => {
                ("sum", json!({"dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true}))
            }
            Kind::Gauge => ("gauge", json!({"dataPoints": points})),
        };
        json!({
            "name": metric.name.trim_end_matches("_total"), "description": metric.help, "unit": metric.unit,
            data.0: data.1,
        })
    };
    let metrics: Vec<Value> =
        snapshot.metrics().iter().filter(|metric| !metric.points.is_empty()).map(metric).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": [attribute(&("service.name", "weftline".into()))]},
        "scopeMetrics": [{
            "scope": {"name": "weftline.collect", "version": env!("CARGO_PKG_VERSION")},
            "metrics": metrics,
        }],
    }]})
}
