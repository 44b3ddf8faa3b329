#pragma once
// Command line of a training on a small table, which tests extend.
#include <string>

#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {

/// Returns `cudp train` on the table, tested on public rows: seeded, at delta = 1e-5, on one
/// thread, with its result as JSON and no progress. `out`: folder of the run.
inline Arguments train_on(const SmallTable& table, const std::string& out) {
  return with({"train", "--dataset", table.table, "--schema", table.schema, "--test-data",
               table.test, "--out", out},
              args("--test-data-is-public --seed 11 --delta 1e-5 --threads 1 --quiet --json"));
}

}  // namespace cudp
