//! An HTTP client for tests: no TLS, and it can lose answers.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_sdk_dynamodb::config::{HttpClient, RuntimeComponents};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::result::ConnectorError;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server has answered, and the answer is lost.
    AnswerLost,
    /// As above, but the client notices when it is told.
    AnswerLostUntil(oneshot::Receiver<()>),
    /// Nothing is sent. This is the answer, with the status of a refusal: for refusals that this server never gives.
    Refused(&'static str),
}

/// Connections that are kept, and what happens to the next requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Http {
    idle: Arc<Mutex<Vec<BufReader<TcpStream>>>>,
    faults: Arc<Mutex<VecDeque<Fault>>>,
}

impl Http {
    pub(crate) fn next(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    async fn exchange(&self, request: HttpRequest) -> io::Result<HttpResponse> {
        // Whoever looks is not disturbed.
        let looks = request.headers().get("x-amz-target").unwrap().ends_with("GetItem");
        let fault = if looks { None } else { self.faults.lock().unwrap().pop_front() };
        if let Some(Fault::Refused(body)) = fault {
            return Ok(HttpResponse::new(400_u16.try_into().unwrap(), body.into()));
        }
        let place = request.uri().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        let idle = self.idle.lock().unwrap().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => BufReader::new(TcpStream::connect(&place).await?),
        };
        let body = request.body().bytes().unwrap();
        let mut text = format!("{} / HTTP/1.1\r\nhost: {place}\r\n", request.method());
        for (name, value) in request.headers().iter().filter(|(name, _)| *name != "host") {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        connection.write_all(&[text.as_bytes(), body].concat()).await?;

        let mut line = String::new();
        connection.read_line(&mut line).await?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            connection.read_line(&mut line).await?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body).await?;
        match fault {
            None => {
                self.idle.lock().unwrap().push(connection);
                Ok(HttpResponse::new(status.try_into().unwrap(), body.into()))
            }
            Some(Fault::Refused(_)) => unreachable!("it was answered"),
            Some(Fault::AnswerLost) => Err(io::ErrorKind::ConnectionReset.into()),
            Some(Fault::AnswerLostUntil(told)) => {
                told.await.unwrap();
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
    }
}

impl HttpConnector for Http {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let this = self.clone();
        HttpConnectorFuture::new(async move {
            this.exchange(request).await.map_err(|error| ConnectorError::io(error.into()))
        })
    }
}

impl HttpClient for Http {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
