"""Texts and classes in, a tuned scikit-learn pipeline out: vectorizer, classifier, grid search, pickle."""

import pickle

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from beamwood.sklearn import XMRClassifier

animals = ["a cat and a dog", "the dog barks", "a cat sleeps", "dogs chase cats", "the bird sings", "birds and cats"]
tools = ["a hammer and nails", "the saw cuts wood", "nails and screws", "a drill", "wood and a hammer", "saw and drill"]
texts, classes = animals + tools, ["animal"] * len(animals) + ["tool"] * len(tools)

pipeline = make_pipeline(TfidfVectorizer(), XMRClassifier("fast"))
search = GridSearchCV(pipeline, {"xmrclassifier__C": [0.1, 1.0, 10.0]}, cv=3).fit(texts, classes)
print(search.best_params_, search.predict(["a dog", "the hammer"]).tolist())

again = pickle.loads(pickle.dumps(search.best_estimator_))  # the model travels as the bytes of its own file
assert again.predict(texts).tolist() == search.predict(texts).tolist()
