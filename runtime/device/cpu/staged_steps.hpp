#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/step/recipe.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/row_pass.hpp"
#include "runtime/data/row_reader.hpp"
#include "runtime/device/batch_draws.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cpu {

/// Limits on a pass: one read of the whole data file, in order, which copies the rows of many
/// coming steps to a temporary file (StagedSteps). Tests use smaller ones.
struct StageLimits {
  /// Maximum number of rows that the steps of one pass draw together; three times as many if one
  /// pass serves all steps. Their indices are kept in memory.
  std::uint64_t rows = std::uint64_t{1} << 22;
  /// Maximum size of the memory in which a pass collects the rows of all its steps before it writes
  /// them [bytes]. The memory may exceed this maximum, because each step gets at least one page.
  std::uint64_t chunks = std::uint64_t{1} << 25;
  /// Minimum part of `chunks` that each step of a pass gets [bytes]. A pass therefore has at most
  /// chunks / min_chunk steps.
  std::uint64_t min_chunk = std::uint64_t{1} << 14;
  /// Whether steps use passes even if reading their rows one by one would be faster, and always
  /// wait for a pass to end. For tests. The limits above still hold.
  bool always = false;
};

/// Plan of the passes that copy the rows of coming steps to temporary files (StagedSteps): number
/// of steps of a pass, and sizes. All numbers follow from public settings and from the size of the
/// file, never from a batch.
struct StagePlan {
  std::uint64_t steps = 0;  ///< number of steps that share a pass; 0: reading row by row is faster
  std::uint64_t slot_rows = 0;    ///< capacity of a step in a temporary file [rows]
  std::uint64_t chunk_bytes = 0;  ///< memory in which rows of a step are collected [bytes]
  /// Number of steps at the start of a training that read their rows one by one, because the first
  /// pass has not ended. Does not apply if read_all_rows() has made the first pass before the first
  /// step.
  std::uint64_t delay = 0;
  std::uint64_t files = 0;  ///< number of temporary files: 2 if there are several passes
  /// Number of steps whose rows are read before they are needed, because the disk answers slowly
  /// while a pass reads it.
  std::uint64_t ahead = 1;

  /// Returns the memory that the passes of this plan take: indices of drawn rows, and rows that
  /// wait to be written [bytes].
  std::uint64_t memory() const;
  /// Returns the size of the temporary files together [bytes]. row_bytes: size of a row.
  std::uint64_t disk(std::uint64_t row_bytes) const {
    return files * steps * slot_rows * row_bytes;
  }
};

/// Plans the passes that copy the rows of coming steps from the file of `train` to temporary files.
/// The result has no steps if reading rows one by one is faster. draw: how the steps draw.
/// expected_batch: public expected batch size of all ranks together. steps: number of steps to
/// come. is_read_anyway: whether all rows must be read before these steps for another use (RowUse),
/// so that the first pass costs no reads. limits: limits on a pass.
StagePlan plan_stage(const Dataset& train, const Draw& draw, double expected_batch,
                     std::uint64_t steps, bool is_read_anyway, const StageLimits& limits = {});

/// Copies the rows of coming steps to temporary files in which the rows of each step lie together.
/// It is used if a step draws a small part of a file that is larger than memory. Each row would
/// then be a separate read from a random position, which is many times slower than reading in
/// order. So the batches of many steps are drawn in advance, and one pass over the file, in large
/// blocks, copies their rows. There are two temporary files if there are several
/// passes: while the steps of one are trained, the next pass fills the other one. The first pass
/// costs no reads if all rows must be read before the first step anyway (read_all_rows). The files
/// have no name, only their owner can read them, and they are gone when the program ends.
///
/// A batch depends only on the random key and the step, and drawing it releases nothing. A step
/// reads each of its rows from the temporary file only once, so that the row's norm and its
/// contribution are computed from the same copy. No result, size of a file or message depends on a
/// batch. A step reads its rows from the data set's own file if they exceed its capacity in the
/// temporary file, or if its pass is not done yet.
class StagedSteps {
 public:
  /// Makes the object and its temporary files. Returns null if passes are not faster, or not
  /// possible on this disk. Keeps a reference to `train`. settings: settings of the engine. limits:
  /// limits on a pass.
  static std::unique_ptr<StagedSteps> open(const Dataset& train, const EngineSettings& settings,
                                           const StageLimits& limits = {});
  ~StagedSteps();
  StagedSteps(const StagedSteps&) = delete;
  StagedSteps& operator=(const StagedSteps&) = delete;
  StagedSteps(StagedSteps&&) = delete;
  StagedSteps& operator=(StagedSteps&&) = delete;

  /// A temporary file with rows of coming steps, and the reader of its rows.
  struct File {
    std::shared_ptr<const RowFile> rows;
    std::unique_ptr<RowReader> reader;
  };
  /// Consecutive steps whose rows one pass has copied to a temporary file, with their batches.
  struct Group {
    std::uint64_t first = 0;                          ///< number of the first step
    std::vector<std::vector<std::uint32_t>> batches;  ///< row indices of each step, ascending
    std::uint64_t slot_rows = 0;
    std::shared_ptr<const File> file;

    std::uint64_t end() const { return first + batches.size(); }
    bool has(std::uint64_t step) const { return step >= first && step < end(); }
    std::span<const std::uint32_t> batch(std::uint64_t step) const { return batches[step - first]; }
    /// Returns the index in the file of the first row of a step.
    std::uint64_t first_row(std::uint64_t step) const { return (step - first) * slot_rows; }
  };

  const StagePlan& plan() const { return plan_; }

  /// Makes the first pass: reads the whole file once, passes all rows to `use`, and copies the rows
  /// of the first steps, from number `step` on. These steps then do not wait for a pass. Returns
  /// whether all rows were read and copied. If not, `use` may have received some of the rows. Must
  /// be called before find(), otherwise returns false. draw: how the steps draw their batches.
  bool read_all_rows(std::uint64_t step, const Draw& draw, const RowUse& use);

  /// Returns the group of steps whose temporary file has the rows of this step; null if there is
  /// none, so that the step must read its rows from the data set's file. Also starts passes for
  /// later steps. The caller must keep the group until its rows have been read. draw: how the steps
  /// draw.
  std::shared_ptr<const Group> find(std::uint64_t step, const Draw& draw);

 private:
  StagedSteps(const Dataset& train, const EngineSettings& settings, const StageLimits& limits);

  /// Starts to draw the batches of the next group of steps in another thread. The group begins with
  /// step `from`, or with the step after all earlier groups if that is later. is_read_anyway:
  /// whether all rows must be read for another use, so that this group's pass costs no reads.
  void draw_next(std::uint64_t from, bool is_read_anyway = false);
  /// Reads the file once, and copies the rows of a group to the group's temporary file. Returns
  /// whether all of them were copied. use: receives all rows that are read (RowUse); null if
  /// nothing needs them.
  bool copy_rows(const Group& group, const RowUse* use = nullptr);
  /// Ends all passes, and removes the temporary files.
  void end_passes();
  /// Starts, in another thread, the pass that copies the rows of the group that was drawn, if a
  /// temporary file is free. Then starts to draw the next group.
  void start_pass();
  /// Waits briefly for the pass through the file that is in progress. If it has ended, the group of
  /// steps whose rows it copied becomes the current group (now_). No more passes are made if it
  /// failed, or if it was too slow: `step`, which the training makes now, is already past the end
  /// of the group.
  void use_passed(std::uint64_t step);
  template <class T>
  bool is_ready(const std::future<T>& result) const;

  const Dataset& train_;
  StageLimits limits_;
  double expected_batch_;
  std::uint64_t steps_;  ///< number of steps of the whole training
  ThreadTeam team_;      ///< draws in the background
  BatchDraws draws_;
  StagePlan plan_;  ///< capacity of the files
  std::optional<Draw> draw_;
  bool ended_ = false;  ///< whether no more passes are made
  std::vector<std::shared_ptr<File>> files_;
  std::uint64_t drawn_until_ = 0;  ///< end of the last group that was drawn or is being drawn
  std::shared_ptr<const Group> now_;
  std::atomic<bool> stop_ = false;
  std::future<std::shared_ptr<Group>> drawing_;
  std::future<std::shared_ptr<Group>> passing_;  ///< null if the pass failed
};

}  // namespace cudp::cpu
