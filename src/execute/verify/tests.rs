use std::time::Duration;

use super::*;

fn verifier(words: &[&str], timeout: Duration) -> Verifier {
    Verifier::new(catalog::VerifierSettings {
        by: Checker::Command(words.iter().map(ToString::to_string).collect()),
        floor: Chance::new(0.5),
        timeout,
        concurrency: 2,
    })
}

/// A program of one line of the shell, which is what is tested, not how it is run.
async fn check(script: &str, expected: Result<f64, &str>) {
    let verifier = verifier(&["sh", "-c", script], Duration::from_secs(60));
    let verdict = verifier.score("1+1?", "2; $(touch /tmp/never)").await;
    let verdict = verdict.map(Chance::get).map_err(|none| format!("{none:?}"));
    match (verdict, expected) {
        (Ok(score), Ok(wanted)) => assert!((score - wanted).abs() < 1e-9, "{script}: {score}"),
        (Err(why), Err(wanted)) => assert!(why.starts_with(wanted), "{script}: {why}"),
        (verdict, _) => panic!("{script}: {verdict:?}"),
    }
}

#[tokio::test]
async fn a_program_is_told_question_and_answer_and_says_a_score() {
    check(r#"grep -q '"answer":"2; $(touch /tmp/never)"' && echo '{"score": 0.75}'"#, Ok(0.75)).await;
    check(r#"echo '{"score": 1, "why": "it is"}'"#, Ok(1.0)).await;
}

#[tokio::test]
async fn whatever_goes_wrong_is_no_verdict() {
    check("echo 0.5", Err("Malformed")).await;
    check(r#"echo '{"score": 2}'"#, Err("Malformed")).await;
    check(r#"echo '{"score": 1}'; exit 3"#, Err("Ended")).await;
    check("head -c 100000 /dev/zero", Err("TooLong")).await;
    let absent = verifier(&["/nowhere/at/all"], Duration::from_secs(5));
    assert!(matches!(absent.score("q", "a").await, Err(VerifierError::Program(_))));
}

#[tokio::test]
async fn a_program_that_does_not_end_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = format!("echo $$ >{}; exec sleep 600", mark.display());
    let slow = verifier(&["sh", "-c", &script], Duration::from_secs(1));
    assert!(matches!(slow.score("q", "a").await, Err(VerifierError::Timeout)));
    // It may not even have begun by then.
    let Ok(begun) = std::fs::read_to_string(mark) else { return };
    let process = std::path::Path::new("/proc").join(begun.trim());
    let gone = async {
        while process.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("it is killed");
}

#[tokio::test]
async fn an_address_is_asked_and_its_errors_are_no_verdict() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let by = Checker::Url(format!("http://{}/score", listener.local_addr().unwrap()));
    let settings = catalog::VerifierSettings {
        by,
        floor: Chance::new(0.5),
        timeout: Duration::from_secs(5),
        concurrency: 1,
    };
    let serve = async {
        for reply in [
            "200 OK\r\ncontent-length: 14\r\n\r\n{\"score\":0.25}",
            "302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
        ] {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            assert!(socket.read(&mut asked).await.unwrap() > 0);
            socket.write_all(format!("HTTP/1.1 {reply}").as_bytes()).await.unwrap();
            socket.shutdown().await.unwrap();
        }
    };
    let ask = async {
        let verifier = Verifier::new(settings);
        assert!((verifier.score("q", "a").await.unwrap().get() - 0.25).abs() < 1e-9);
        assert!(matches!(verifier.score("q", "a").await, Err(VerifierError::Status(302))));
    };
    tokio::join!(serve, ask);
}
