#pragma once
#include <vector>

#include "runtime/report/document.hpp"
#include "runtime/report/run_facts.hpp"

namespace cudp {

/// Returns the charts of a run for its report, with explanations: the privacy spent (epsilon) over
/// epochs and, if there are test metrics, these over epochs. If the run has only one line of
/// metrics, returns sentences instead of charts.
std::vector<page::Block> charts_of(const RunFacts& facts);

/// Returns a table of the final model's test metrics: exact ones on test rows, or noisy ones on
/// rows held out of the training data. Empty if there are none.
std::vector<page::Block> figures_of(const RunFacts& facts, const ReportFiles& files);

/// The parsed files of a run, and the run's name in a comparison of several runs.
struct NamedFacts {
  std::string name;
  RunFacts facts;
};

/// Returns a chart with one curve per run: its first test metric (accuracy, or RMSE) over epochs.
/// Compares only runs whose kind of prediction (classes or a number) is that of the first run with
/// metrics. Empty if there are fewer than two such runs.
std::vector<page::Block> compared_charts(const std::vector<NamedFacts>& runs);

}  // namespace cudp
