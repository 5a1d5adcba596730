"""Stage 4: the clusters are looked at, and asked where looking is not enough."""

from reconciler.predict.ask import FIELD_MANAGER, predict, prepare
from reconciler.predict.look import greet, look
from reconciler.prediction import ClusterView, Conflict, Prediction

__all__ = ["FIELD_MANAGER", "ClusterView", "Conflict", "Prediction", "greet", "look", "predict", "prepare"]
