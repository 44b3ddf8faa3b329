#pragma once
#include <string>

#include "runtime/export/note.hpp"
#include "runtime/results/released_model.hpp"

namespace cudp {

/// Returns the bytes of an ONNX file with a released model: IR version 8, with operators of opset
/// 17 only. note: warnings that the file repeats. name: name of the model.
///
/// The inputs depend on the data that the model was trained on. N is the number of rows, d the
/// number of features of a row:
/// - a table or a matrix: `features`, float [N, d], in the order of the metadata feature-names;
/// - images: `pixels`, uint8 [N, channels, height, width];
/// - images of which principal components are used: `pixels`, uint8 [N, d], channel by channel;
/// - scattering features: `features`, float [N, channels, height, width], as cudp computes them;
/// - texts: `tokens`, int64 [N, words], word ids, 0 after a text's last word; and `lengths`, int32
///   [N], number of words of each text.
///
/// The outputs are `logits`, float [N, outputs]; for classes also `probabilities`, float [N,
/// classes]; for a target also `value`, double [N, 1], in the target's unit and within its bounds.
/// A model with hinge loss has logits only. The metadata are schema, feature-names, classes, words,
/// dataset and not-for-release. Throws InputError on a model of 2 GiB or more, which the format
/// cannot hold.
std::string onnx_model(const ReleasedModel& model, const ExportNote& note, const std::string& name);

}  // namespace cudp
