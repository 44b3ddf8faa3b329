#pragma once
#include <string>

#include "runtime/export/note.hpp"
#include "runtime/results/released_model.hpp"

namespace cudp {

/// Exports a released model as one Python file that needs only numpy: a module with score(rows),
/// and a program that writes what `cudp predict` writes. The file reads cells, dates, numbers and
/// missing values as cudp does, and contains the schema of the columns and the weights. note:
/// warnings that the file repeats. name: path of the model, for messages. Throws InputError, with
/// the reason, if the model's inputs are texts or scattering features of images.
std::string python_scorer(const ReleasedModel& model, const ExportNote& note,
                          const std::string& name);

/// Returns a description of the model as JSON: the input's shape, the scale of pixels, and the
/// layers. From this description and the model's tensors, in their order, a program can compute the
/// model's outputs. name: path of the model, for messages. Throws InputError, with the reason, if
/// the model's inputs are texts or scattering features of images.
std::string description_of(const ReleasedModel& model, const std::string& name);

}  // namespace cudp
