#pragma once
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/reporter.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/metrics.hpp"
#include "runtime/run/prepare.hpp"

namespace cudp {

/// Writes the rows so far: accuracies on a public test set among the released files, on another one
/// in the private folder.
void write_metrics(const RunFolder& folder, const DataSplit& data,
                   const std::vector<MetricsRow>& metrics);

/// Writes the folder's release: the weights with what `cudp eval` needs to rebuild the network,
/// metrics, certificate and curves.
void write_release(const RunFolder& folder, const Experiment& experiment,
                   std::vector<float> parameters, const std::vector<MetricsRow>& metrics,
                   const nlohmann::ordered_json& certificate, Reporter& reporter);

}  // namespace cudp
