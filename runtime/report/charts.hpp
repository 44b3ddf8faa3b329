#pragma once
#include <vector>

#include "runtime/report/document.hpp"
#include "runtime/report/run_facts.hpp"

namespace cudp {

/// Returns the charts of a run by epoch, with their explanations: the spent budget, and the test
/// figures if there are any. A run that measured once has no curve, and sentences instead.
std::vector<page::Block> charts_of(const RunFacts& facts);

/// Returns the figures at the end of the run as a table; empty if there are none. They are of test
/// rows, or noisy ones of held-out rows.
std::vector<page::Block> figures_of(const RunFacts& facts, const ReportFiles& files);

/// A run and its name in a comparison.
struct NamedFacts {
  std::string name;
  RunFacts facts;
};

/// Returns a chart with the first metric of each run by epoch; empty if no two runs have figures of
/// the same kind.
std::vector<page::Block> compared_charts(const std::vector<NamedFacts>& runs);

}  // namespace cudp
