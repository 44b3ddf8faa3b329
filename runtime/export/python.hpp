#pragma once
#include <string>

#include "runtime/export/note.hpp"
#include "runtime/results/released_model.hpp"

namespace cudp {

/// Exports a released model as one Python file that needs only numpy: a module with score(rows),
/// and a program that writes what `cudp predict` writes. It reads cells, dates, numbers and missing
/// values as cudp does (the code is that of scorer.py), and contains the columns' schema and the
/// weights. name: path of the model, for errors. Throws InputError, naming the reason, on a model
/// of texts or of scattering features.
std::string python_scorer(const ReleasedModel& model, const ExportNote& note,
                          const std::string& name);

/// Returns a description of the model as JSON, from which a program can compute its outputs with
/// its tensors, in their order: the input's shape, the scale of pixels, and the layers. name: path
/// of the model, for errors. Throws InputError, naming the reason, on a model of texts or of
/// scattering features.
std::string description_of(const ReleasedModel& model, const std::string& name);

}  // namespace cudp
