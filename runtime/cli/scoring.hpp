#pragma once
// Code shared by `cudp eval` and `cudp predict`: a released model, and the data to score.
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/config/option.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/results/scorer.hpp"

namespace cudp {

/// Returns the options that `cudp eval` and `cudp predict` have in common: the data, how they are
/// read, and on which device the model is computed.
std::vector<Option> scoring_options();

/// Returns a description of the rows to score with a model, made from the options that `cudp eval`
/// and `cudp predict` have in common. Its members labels, ids and group_by stay unset; each command
/// sets them itself.
ScoringRequest scoring_request(const TrainConfig& config);

/// Returns the text that is shown while rows are scored: "scoring 'patients.csv'".
std::string scoring_text(const std::string& dataset);

/// Reads a released model. place: path of a run's folder, of its folder release/, or of the model's
/// file. If the options in `config` name a file with the embedding of words, that file is used
/// instead of the one that the model names.
ReleasedModel model_for(const TrainConfig& config, const std::string& place);

}  // namespace cudp
