//! Why an upstream could not be connected to, in a few words without its address.

use std::io;

use rustls::CertificateError;

use super::super::transport_error::TransportError;

/// `ENFILE` and `EMFILE`: the system, or this process, has as many files open as it may. All Unix systems number them alike.
const OUT_OF_FILES: [i32; 2] = [23, 24];

/// Whether this machine had no room for another connection. That is nothing of the upstream's.
pub(super) fn is_out_of_files(error: &TransportError) -> bool {
    let mut codes = error.causes().filter_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
    cfg!(unix) && codes.any(|code| OUT_OF_FILES.contains(&code))
}

/// The class of an error.
pub(super) fn class(error: &TransportError) -> &'static str {
    let tls = error.causes().find_map(|cause| cause.downcast_ref::<rustls::Error>());
    if let Some(rustls::Error::InvalidCertificate(why)) = tls {
        return of_certificate(why);
    }
    let mut kinds = error.causes().filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    let known = |kind| match kind {
        io::ErrorKind::ConnectionRefused => Some("connection refused"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some("no route"),
        io::ErrorKind::InvalidData => Some("its TLS is not accepted"),
        _ => None,
    };
    kinds.find_map(known).unwrap_or("connection failed")
}

fn of_certificate(why: &CertificateError) -> &'static str {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; is the clock of this machine right?"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        CertificateError::UnknownIssuer => {
            "its certificate is from an issuer that this machine does not trust"
        }
        CertificateError::Revoked => "its certificate was revoked",
        _ => "its certificate is not accepted",
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::transport_error::TransportErrorKind;
    use super::super::of_transport;
    use super::*;
    use crate::Fault;

    fn failed(error: io::Error) -> crate::Failure {
        let mut error = TransportError::broken(error);
        error.kind = TransportErrorKind::Connect;
        of_transport(&error)
    }

    #[cfg(unix)]
    #[test]
    fn a_lack_of_open_files_is_the_gateways_own_fault() {
        for code in OUT_OF_FILES {
            let failure = failed(io::Error::from_raw_os_error(code));
            assert_eq!((failure.fault, failure.unsent), (Fault::Gateway, true));
            assert!(failure.message.contains("ulimit -n"), "{failure}");
        }
        let refused = failed(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(refused.fault, Fault::Backend);
        assert_eq!(refused.message, "the upstream could not be connected to: connection refused");
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_said() {
        let check = |why: CertificateError, words: &str| {
            let error = rustls::Error::InvalidCertificate(why);
            let failure = failed(io::Error::new(io::ErrorKind::InvalidData, error));
            assert_eq!(
                failure.message,
                format!("the upstream could not be connected to: its certificate {words}")
            );
        };
        check(CertificateError::Expired, "has expired");
        check(CertificateError::UnknownIssuer, "is from an issuer that this machine does not trust");
        check(CertificateError::NotValidForName, "is for another name");
        check(CertificateError::BadEncoding, "is not accepted");
        let other = failed(io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError));
        assert!(other.message.ends_with("its TLS is not accepted"), "{other}");
    }
}
