"""The banner of reports that show single records, or what follows from one."""

from __future__ import annotations

from epsilometer.instances.result import WARNING

OF_MEMBERS = f"PRIVATE: single records are named and shown here, and who was in the training data. {WARNING}"
OF_REBUILT = "PRIVATE: records are shown here, and what was rebuilt of them. Do not publish them."
