#pragma once
#include <vector>

#include "runtime/report/document.hpp"
#include "runtime/report/run_facts.hpp"

namespace cudp {

/// Returns the charts of a run over epochs, with explanations: the spent budget, and the test
/// figures if there are any. If the run has only one line of metrics, returns sentences instead of
/// curves.
std::vector<page::Block> charts_of(const RunFacts& facts);

/// Returns a table of the test figures of the final model: those of test rows, or noisy ones of
/// held-out rows. Empty if there are none.
std::vector<page::Block> figures_of(const RunFacts& facts, const ReportFiles& files);

/// A run and its name in a comparison.
struct NamedFacts {
  std::string name;
  RunFacts facts;
};

/// Returns a chart with the first metric of each run over epochs; empty if no two runs have figures
/// of the same kind (classes or target).
std::vector<page::Block> compared_charts(const std::vector<NamedFacts>& runs);

}  // namespace cudp
