#include "runtime/training/memory_line.hpp"

#include <spdlog/fmt/fmt.h>

#include "runtime/base/threads.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {
namespace {

/// Returns the memory that the examples of a data set take [bytes].
double bytes_in_memory(const Dataset& data) {
  const auto of = [](const auto& array) {
    return static_cast<double>(array.size() * sizeof(*array.data()));
  };
  const double features = data.rows != nullptr ? 0.0
                                               : static_cast<double>(data.size()) *
                                                     static_cast<double>(feature_bytes(data));
  return features + of(data.lengths) + of(data.labels) + of(data.targets) +
         2.0 * of(data.numbers) +  // and their indices
         of(data.first_rows);
}

double bytes_in_file(const Dataset& data) {
  if (data.rows == nullptr) return 0.0;
  return static_cast<double>(data.size()) * static_cast<double>(data.rows->row_bytes());
}

}  // namespace

std::string memory_line(const Experiment& e) {
  const DataSplit& data = e.data;
  const double in_file = bytes_in_file(data.train) + bytes_in_file(data.test);
  if (in_file == 0.0) return "";
  const int threads = e.config.threads > 0 ? static_cast<int>(e.config.threads) : available_cores();
  // Parameters are kept in up to 15 arrays of 4 bytes, and by each thread in sums of 16 bytes. A
  // thread has the numbers of an example at hand, and copies of up to 256 rows.
  const double model = static_cast<double>(e.network.parameter_count) * (60.0 + 16.0 * threads);
  const double copies = threads * (4e6 + 256.0 * static_cast<double>(feature_bytes(data.train)));
  constexpr double kProgram = 30e6;  // the program itself, and blocks of a file that is being read
  // CUDA has two buffers for rows that do not fit the device (runtime/device/cuda/row_stream.hpp).
  const double streamed = e.backend.name == "cuda" ? 2.0 * 0x1p28 : 0.0;
  // Some methods store a norm for each example, in their state and in checkpoints.
  const double per_example = 16.0 * static_cast<double>(data.train.size());
  const double peak = kProgram + model + copies + streamed + per_example +
                      bytes_in_memory(data.train) + bytes_in_memory(data.test);
  return fmt::format(
      "at most about {:.0f} MB of memory; {:.0f} MB of features stay in files, of which the "
      "system keeps in memory what has space",
      peak / 1e6, in_file / 1e6);
}

}  // namespace cudp
