#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/reporter.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/results/predictor.hpp"
#include "runtime/results/released_model.hpp"

namespace cudp {

/// Request to score rows with a model, i.e. to compute its outputs for them: which rows, and which
/// of their columns to keep with the scores.
struct ScoringRequest {
  /// Data set or file with the rows; the path "-" is a table on standard input. A schema need not
  /// be given, because models store one (except models of early versions); if it is given, it must
  /// match the model's.
  DataRequest data;
  bool labels = true;      ///< if false, labels may be absent and are not used
  bool ids = false;        ///< keep the cells of the id column, if the table has one
  std::string group_by{};  ///< name of a column whose cells are kept; tables only
  std::string feature_cache = "none";
  int threads = 0;  ///< number of CPU threads; 0 for all cores
};

/// A block of consecutive rows: the model's outputs for them, and the columns that were to be kept.
struct ScoredBlock {
  std::uint64_t first_row = 0;  ///< index of the block's first row
  Predictions predictions;      ///< labels are 0 if they were not requested
  TextList ids;                 ///< [rows] cells of the id column, if there is one
  TextList groups;              ///< [rows] cells of ScoringRequest::group_by, if set
};

/// Computes a released model's outputs for rows, in order. Tables and arrays are read in blocks of
/// rows, so that memory use does not grow with the number of rows. Any other data set is one block.
class Scorer {
 public:
  /// Opens the data. model: must outlive the scorer. model_name: for messages. Throws InputError if
  /// the data cannot be read, or does not match the model's training data in columns, categories,
  /// classes, bounds or shape.
  Scorer(const ReleasedModel& model, const std::string& model_name, const ScoringRequest& request,
         const Backend& backend, Reporter& reporter);
  ~Scorer();
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  /// Reads the next block of rows and computes the model's outputs for it. Returns false after the
  /// last block. Throws InputError if a row has values that the schema does not allow.
  bool next(ScoredBlock& block);

  const std::string& data_name() const { return name_; }
  bool has_ids() const { return has_ids_; }

 private:
  struct Stream;

  void open_table(const DataRequest& data, const ScoringRequest& request);
  void open_matrix(const DataRequest& data, const ScoringRequest& request);
  void load(DataRequest data);
  /// Applies the transforms that the model needs before its network (such as principal components)
  /// to examples, in place. Throws InputError if the result does not fit the network's input.
  void fit_to_network(Dataset& examples);

  const ReleasedModel& model_;
  std::string model_name_;
  const Backend& backend_;
  Reporter& reporter_;
  FeatureSettings features_;
  Predictor predictor_;
  std::string name_;
  bool has_ids_ = false;
  std::unique_ptr<Stream> stream_;  ///< the table or matrix that is read; null if `whole_` is used
  /// A data set that is scored as one block; empty once next() has returned it, and if the rows are
  /// read from `stream_`.
  std::optional<Dataset> whole_;
};

}  // namespace cudp
