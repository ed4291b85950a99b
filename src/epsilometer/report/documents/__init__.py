"""What result.json holds, by kind: every field with its type and meaning. This is what a program may rely on.

`docs/results.md` is made from these types, and tests hold real results of every kind to them.
"""

from epsilometer.report.documents.audit import AuditDocument
from epsilometer.report.documents.instances import InstancesDocument
from epsilometer.report.documents.membership import MembershipDocument
from epsilometer.report.documents.parts import Document
from epsilometer.report.documents.property import PropertyDocument
from epsilometer.report.documents.reconstruction import ReconstructionDocument
from epsilometer.report.documents.tables import CalibrationDocument, LadderDocument, ReproductionDocument
from epsilometer.report.documents.watch import WatchDocument

DOCUMENTS: dict[str, type] = {
    "audit": AuditDocument,
    "membership": MembershipDocument,
    "instances": InstancesDocument,
    "property": PropertyDocument,
    "reconstruction": ReconstructionDocument,
    "watch": WatchDocument,
    "calibration": CalibrationDocument,
    "reproduction": ReproductionDocument,
    "ladder": LadderDocument,
}

__all__ = [
    "DOCUMENTS",
    "AuditDocument",
    "CalibrationDocument",
    "Document",
    "InstancesDocument",
    "LadderDocument",
    "MembershipDocument",
    "PropertyDocument",
    "ReconstructionDocument",
    "ReproductionDocument",
    "WatchDocument",
]
