#include "runtime/training/memory_line.hpp"

#include <algorithm>
#include <variant>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/threads.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/batch_draws.hpp"
#include "runtime/device/cpu/rows_ahead.hpp"
#include "runtime/device/cpu/staged_steps.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {
namespace {

template <class Array>
double bytes_of_array(const Array& array) {
  return static_cast<double>(array.size() * sizeof(*array.data()));
}

/// Returns the size of the arrays that are stored in files together with the features [bytes].
double bytes_of_row_arrays(const Dataset& data) {
  return bytes_of_array(data.targets) + bytes_of_array(data.numbers) +
         bytes_of_array(data.first_rows);
}

/// Returns the memory that the examples of a data set take [bytes].
double bytes_in_memory(const Dataset& data) {
  const double size = static_cast<double>(data.size());
  const double of_each = bytes_of_array(data.lengths) + bytes_of_array(data.labels);
  // If rows were held out, two bits for each row tell whether it is in the training set
  // (Numbering). Authentication codes take 16 bytes for each block of 256 rows; they are counted
  // three times.
  const double of_all = 0.25 * size + 3.0 * 16.0 / 256.0 * size;
  if (data.rows != nullptr) return of_each + of_all;
  return of_each + of_all + bytes_of_row_arrays(data) +
         size * static_cast<double>(feature_bytes(data));
}

double bytes_in_file(const Dataset& data) {
  if (data.rows == nullptr) return 0.0;
  return static_cast<double>(data.size()) * static_cast<double>(data.rows->row_bytes()) +
         bytes_of_row_arrays(data);
}

/// Returns the memory for drawing batches [bytes]: for importance sampling, gradient norms of all
/// examples; for other methods, sampling indices of drawn examples.
double bytes_of_draws(const Method& method, double examples) {
  const auto* const steps = dynamic_cast<const EngineMethod*>(&method);
  if (steps == nullptr) return 0.0;
  const Draw draw = steps->recipe().draw;
  // Gradient norms of all examples: in the engine's state, in copies of the state for a checkpoint,
  // and ordered by sampling index (Numbering::by_number).
  if (std::holds_alternative<Candidates>(draw)) return 16.0 * examples;
  const double batch = 16.0 * (method.examples_per_step() + 1e5);
  if (std::holds_alternative<Poisson>(draw)) return batch;
  return batch + 8e6 + 6.0 * std::min(examples, static_cast<double>(BatchDraws::kMaxAllocated));
}

/// Returns whether the CPU reads rows ahead of a method's steps, from a file.
bool reads_ahead(const Experiment& e, const Method& method) {
  const Dataset& train = e.data.train;
  return e.backend.name != "cuda" && train.rows != nullptr && !train.rows->stays_in_memory() &&
         dynamic_cast<const EngineMethod*>(&method) != nullptr;
}

/// Returns the plan by which the CPU copies the rows of coming steps to temporary files. Requires
/// reads_ahead().
cpu::StagePlan stage_of(const Experiment& e, const EngineMethod& method) {
  const Dataset& train = e.data.train;
  if (train.rows->folder_for_copies().empty()) return {};
  return cpu::plan_stage(train, method.recipe().draw, method.examples_per_step(), method.steps(),
                         true);
}

/// Returns the memory of the rows that the CPU reads ahead of a method's steps [bytes].
double bytes_read_ahead(const Experiment& e, const Method& method, const cpu::StagePlan& stage) {
  if (!reads_ahead(e, method)) return 0.0;
  const double batch = method.examples_per_step() + 1e4;
  const double features = std::min(batch * static_cast<double>(feature_bytes(e.data.train)),
                                   static_cast<double>(cpu::RowsAhead::kMaxBytes));
  const double batches = static_cast<double>(stage.ahead) + 1.0;
  // A batch also has indices, labels and targets (16 bytes for each row). RowReader has a buffer
  // for reads in progress.
  return batches * (features + 16.0 * batch) + static_cast<double>(RowReader::kMaxBytes) +
         static_cast<double>(stage.memory());
}

}  // namespace

std::string memory_line(const Experiment& e, const Method& method) {
  const DataSplit& data = e.data;
  const double in_file = bytes_in_file(data.train) + bytes_in_file(data.test);
  if (in_file == 0.0) return "";
  const int threads = e.config.threads > 0 ? static_cast<int>(e.config.threads) : available_cores();
  // A parameter takes up to 60 bytes, in 15 arrays, and 16 bytes for the sums of each thread. A
  // thread also has about 4 MB of working memory, and copies of up to 256 rows.
  const double model = static_cast<double>(e.network.parameter_count) * (60.0 + 16.0 * threads);
  const double copies = threads * (4e6 + 256.0 * static_cast<double>(feature_bytes(data.train)));
  constexpr double kProgram = 30e6;  // the program itself, and blocks of a file that is being read
  // CUDA has two buffers for rows that do not fit the device (runtime/device/cuda/row_stream.hpp).
  const double streamed = e.backend.name == "cuda" ? 2.0 * 0x1p28 : 0.0;
  // Logits, labels, targets and losses of the test rows.
  const double tested =
      static_cast<double>(data.test.size()) * (4.0 * e.network.outputs + 1.0 + 4.0 + 8.0);
  const cpu::StagePlan stage = reads_ahead(e, method)
                                   ? stage_of(e, dynamic_cast<const EngineMethod&>(method))
                                   : cpu::StagePlan{};
  // If rows are copied to temporary files ahead of their steps, batches of later steps are drawn at
  // the same time as those of the current steps, with memory of their own.
  const double draws = bytes_of_draws(method, static_cast<double>(data.train.size())) *
                       (stage.steps > 0 ? 2.0 : 1.0);
  const double peak = kProgram + model + copies + streamed + tested + draws +
                      bytes_read_ahead(e, method, stage) + bytes_in_memory(data.train) +
                      bytes_in_memory(data.test);
  std::string line = fmt::format(
      "at most about {:.0f} MB of memory; {:.0f} MB of rows stay in files, of which the "
      "system keeps in memory what has space",
      peak / 1e6, in_file / 1e6);
  if (stage.steps > 0)
    line += fmt::format("; {:.0f} MB of the disk for copies of rows in the order of steps",
                        static_cast<double>(stage.disk(data.train.rows->row_bytes())) / 1e6);
  return line;
}

}  // namespace cudp
