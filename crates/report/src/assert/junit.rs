//! Results of assertions as the XML that CI systems read.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::assertion::{Assertion, AssertionOutcome};

/// A condition that was checked: a test case of the XML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JunitCase {
    /// The condition, in words.
    pub name: String,
    /// Why it does not hold; `None` if it does.
    pub failure: Option<String>,
}

#[derive(Clone, Debug)]
pub struct AssertionResult {
    pub assertion: Assertion,
    pub verdict: AssertionOutcome,
}

impl From<&AssertionResult> for JunitCase {
    fn from(AssertionResult { assertion, verdict }: &AssertionResult) -> Self {
        let failure = match verdict {
            AssertionOutcome::Holds => None,
            AssertionOutcome::Breached(reason) => Some(reason.clone()),
        };
        Self { name: assertion.to_string(), failure }
    }
}

impl From<&bench::compare::BenchAssertionResult> for JunitCase {
    fn from(result: &bench::compare::BenchAssertionResult) -> Self {
        let failure = match &result.outcome {
            bench::compare::BenchAssertionOutcome::Holds(_) => None,
            bench::compare::BenchAssertionOutcome::Breached(reason) => Some(reason.clone()),
        };
        Self { name: format!("{} of {} in {}", result.condition, result.target, result.case), failure }
    }
}

/// A `JUnit` test suite with a case for each condition. `name` is the name of the checked run, `duration_us` its
/// length.
pub fn junit<C>(name: &str, duration_us: u64, checked: impl IntoIterator<Item = C>) -> String
where
    JunitCase: From<C>,
{
    let checked: Vec<JunitCase> = checked.into_iter().map(JunitCase::from).collect();
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing into memory does not fail.
    let _ = write(&mut writer, name, duration_us, &checked);
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    text.push('\n');
    text
}

fn write(
    writer: &mut Writer<Vec<u8>>,
    name: &str,
    duration_us: u64,
    checked: &[JunitCase],
) -> std::io::Result<()> {
    let breached = checked.iter().filter(|case| case.failure.is_some()).count();
    let counts = [checked.len(), breached].map(|count| count.to_string());
    let time = format!("{:.3}", duration_us as f64 / 1e6);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suite = writer.create_element("testsuite").with_attributes([
        ("name", name),
        ("tests", counts[0].as_str()),
        ("failures", counts[1].as_str()),
        ("errors", "0"),
        ("time", time.as_str()),
    ]);
    suite.write_inner_content(|writer| {
        for JunitCase { name, failure } in checked {
            let case = writer
                .create_element("testcase")
                .with_attributes([("classname", "tlsdash"), ("name", name.as_str())]);
            match failure {
                None => case.write_empty()?,
                Some(reason) => failed(case, reason)?,
            };
        }
        Ok(())
    })?;
    Ok(())
}

type CaseWriter<'a> = quick_xml::writer::ElementWriter<'a, Vec<u8>>;

fn failed<'a>(case: CaseWriter<'a>, reason: &str) -> std::io::Result<&'a mut Writer<Vec<u8>>> {
    case.write_inner_content(|writer| {
        let failure = writer.create_element("failure").with_attribute(("message", reason));
        failure.write_text_content(BytesText::new(reason))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_special_in_xml_is_escaped_and_failures_are_counted() {
        let checked = |text: &str, verdict| AssertionResult { assertion: text.parse().unwrap(), verdict };
        let xml = junit(
            "<a> & \"b\"",
            1_500_000,
            &[
                checked("errors == 0", AssertionOutcome::Holds),
                checked(
                    "response.p99 < 5ms",
                    AssertionOutcome::Breached("it is 6 ms, 20.0 % above".to_owned()),
                ),
            ],
        );
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuite name=\"&lt;a&gt; &amp; &quot;b&quot;\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"1.500\">
  <testcase classname=\"tlsdash\" name=\"errors == 0\"/>
  <testcase classname=\"tlsdash\" name=\"response.p99 &lt; 5ms\">
    <failure message=\"it is 6 ms, 20.0 % above\">it is 6 ms, 20.0 % above</failure>
  </testcase>
</testsuite>
";
        assert_eq!(xml, expected);
    }
}
