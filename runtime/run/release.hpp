#pragma once
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/reporter.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/prepare.hpp"

namespace cudp {

/// Writes the rows so far: accuracies on a public test set among the released files, on another one
/// in the private folder; all in the private folder for a method that gives no privacy.
void write_metrics(const RunFolder& folder, const Experiment& experiment,
                   const std::vector<MetricsRow>& metrics);

/// Writes the folder's release: the weights with what `cudp eval` needs to rebuild the network,
/// metrics, certificate and curves. Of a method that gives no privacy all this is in the private
/// folder, and the release is a note that says so.
void write_release(const RunFolder& folder, const Experiment& experiment,
                   std::vector<float> parameters, const std::vector<MetricsRow>& metrics,
                   const nlohmann::ordered_json& certificate, Reporter& reporter);

}  // namespace cudp
