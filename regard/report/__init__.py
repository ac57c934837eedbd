"""To look at: the page of a run, kept up to date while it trains, and runs beside each other.

matplotlib is imported when something is drawn, and not before.
"""

from regard.report.live import LiveReport, refresh_report
from regard.report.write import write_report

__all__ = ["LiveReport", "refresh_report", "write_report"]
