"""Write reports as JUnit XML, for the test pages of CI systems."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

from iceexplore.doctor.report._text import ReportLike, affected_text
from iceexplore.errors import visible

__all__ = ["junit_error", "junit_page", "junit_suite"]


def junit_suite(report: ReportLike, name: str) -> Element:
    """Return the test suite of one table.

    Each finding is a test. The test fails if the severity of the finding is worse than ``untidy``. Otherwise the test
    passes, and its output is the text of the finding. A check that could not be done is a skipped test. If the table
    could not be opened, the only test has an error. If there are no findings and no skipped tests, the suite has one
    test that passes.
    """
    suite = Element("testsuite", name=visible(name), time=f"{report.seconds:.3f}")
    for one in report.findings:
        case = _case(suite, name, f"{one.title} [{one.code}]")
        body = "\n".join(
            visible(f"{label}: {text}")
            for label, text in (
                ("what", one.text),
                ("where", one.where),
                ("affects", affected_text(one)),
                ("means", one.means),
                ("do", one.advice),
            )
            if text
        )
        if not report.opened:
            SubElement(case, "error", type=one.code, message=visible(one.text)).text = body
        elif one.severity == "untidy":
            SubElement(case, "system-out").text = body
        else:
            SubElement(case, "failure", type=f"{one.severity}: {one.code}", message=visible(one.text)).text = body
    for check, why in report.unknown.items() if report.opened else ():
        SubElement(_case(suite, name, check), "skipped", message=visible(why))
    if not len(suite):
        _case(suite, name, "check")
    return _counted(suite)


def junit_error(name: str, why: str, seconds: float) -> Element:
    """Return the test suite of a table that could not be checked."""
    suite = Element("testsuite", name=visible(name), time=f"{seconds:.3f}")
    SubElement(_case(suite, name, "check"), "error", message=visible(why))
    return _counted(suite)


def junit_page(suites: Iterable[Element]) -> str:
    """Return the XML document that contains the given test suites."""
    root = Element("testsuites", name="iceexplore")
    root.extend(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _case(suite: Element, table: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=visible(table), name=visible(name))


def _counted(suite: Element) -> Element:
    suite.set("tests", str(len(suite)))
    for kind, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
    return suite
