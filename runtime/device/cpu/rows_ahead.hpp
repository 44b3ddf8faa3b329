#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/step/recipe.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/row_reader.hpp"
#include "runtime/device/batch_draws.hpp"
#include "runtime/device/cpu/staged_steps.hpp"

namespace cudp::cpu {

/// Draws the batches of the next steps, and reads their rows from disk, while the current step is
/// computed. Used if the features are in a file that is larger than memory. Rows are read from the
/// data set's file, or from a temporary file to which StagedSteps has copied them. Results do not
/// change, because a batch depends only on the random key and the step. If the next step that is
/// requested is another one than expected, the batches that were read ahead are discarded.
class RowsAhead {
 public:
  /// Maximum size of a batch's features for which they are read ahead [bytes]. The features of a
  /// larger batch are read during its step. The features of up to StagePlan::ahead + 1 batches are
  /// in memory at the same time: of the current step, and of the steps after it.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 27;

  /// Makes an object for a training set. Returns null if the features are in memory, or if their
  /// file cannot be read ahead. Keeps references to `train` and `draws`. settings: settings of the
  /// engine. limits: limits on the passes over the file that copy rows of coming steps
  /// (StagedSteps).
  static std::unique_ptr<RowsAhead> open(const Dataset& train, BatchDraws& draws,
                                         const EngineSettings& settings,
                                         const StageLimits& limits = {});
  ~RowsAhead();
  RowsAhead(const RowsAhead&) = delete;
  RowsAhead& operator=(const RowsAhead&) = delete;
  RowsAhead(RowsAhead&&) = delete;
  RowsAhead& operator=(RowsAhead&&) = delete;

  /// The batch of a step (indices of its examples), and the data set that has the features of these
  /// examples.
  struct Step {
    std::span<const std::uint32_t> batch;  ///< indices in the training set, ascending
    /// Data set that has the features of the batch's examples: a copy of the batch in memory, or
    /// the training set itself if the batch was not read ahead. `examples` has the examples'
    /// indices in it, in the order of the batch.
    const Dataset* data = nullptr;
    std::span<const std::uint32_t> examples;
  };

  /// Returns the batch of a step, valid until the next call, and starts to read the batches of the
  /// steps after it. Requires a draw that does not depend on gradient norms. Throws InputError if
  /// the file is too short by now, cannot be read, or has a record that is not valid.
  Step take(std::uint64_t step, const Draw& draw);

  /// Reads all rows of the file once. Passes them to `use`, and copies the rows of the first steps,
  /// from number `step` on, to a temporary file (StagedSteps::read_all_rows). Returns whether all
  /// rows were read and copied; false also if no temporary files are used.
  bool read_all_rows(std::uint64_t step, const Draw& draw, const RowUse& use) {
    return staged_ != nullptr && staged_->read_all_rows(step, draw, use);
  }

  /// Returns how many batches were read from temporary files. For tests.
  std::uint64_t staged_batches() const { return staged_batches_; }

 private:
  /// A batch that was drawn, and the state of reading its rows.
  struct Batch {
    std::optional<std::uint64_t> step;
    Draw draw;
    std::vector<std::uint32_t> drawn;
    bool is_read = false;  ///< features are in `copies`, or on their way
    FetchedExamples copies;
    RowReader::List reading;
    RowReader* reader = nullptr;  ///< reader of the file that has the rows
    /// The group of steps whose temporary file has the rows of this batch, kept alive until they
    /// have been read. Null if the rows are read from the data set's own file.
    std::shared_ptr<const StagedSteps::Group> staged;
    std::vector<std::uint32_t> staged_rows;  ///< indices of the rows in the temporary file
  };

  RowsAhead(const Dataset& train, BatchDraws& draws, std::unique_ptr<RowReader> reader,
            std::unique_ptr<StagedSteps> staged);

  /// Draws the batch of a step and starts to read its rows, unless that was done already. draw: how
  /// the batch is drawn.
  Batch& begin(std::uint64_t step, const Draw& draw);
  /// Draws the batch of a step, decides from which file its rows are read (the data set's own or a
  /// temporary one), and writes the result to `batch`. draw: how the batch is drawn.
  void draw(Batch& batch, std::uint64_t step, const Draw& draw);
  /// Waits until the rows of a batch have been read, and checks that they are valid.
  void finish(Batch& batch);

  const Dataset& train_;
  BatchDraws& draws_;
  std::vector<Batch> batches_;  ///< of this and the next steps, [step % batches_.size()]
  std::unique_ptr<RowReader> reader_;
  std::unique_ptr<StagedSteps> staged_;  ///< null: no rows are copied to temporary files
  std::uint64_t staged_batches_ = 0;
};

}  // namespace cudp::cpu
