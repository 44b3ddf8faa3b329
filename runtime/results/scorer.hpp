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

/// The rows to be scored, and what of them is kept beside the scores.
struct ScoringRequest {
  /// The source, as load_test_data reads it; "-" is a table on the standard input. A schema is
  /// needed only for models of earlier versions; one that is there must be that of the model.
  DataRequest data;
  bool labels = true;      ///< false: they may be absent, and are not looked at where they are not
  bool ids = false;        ///< keep the texts of the id column, where the table has one
  std::string group_by{};  ///< keep the texts of this column; tables only
  std::string feature_cache = "none";
  int threads = 0;  ///< of the CPU; 0: all
};

/// Some rows in order, with the model's answers.
struct ScoredBlock {
  std::uint64_t first_row = 0;  ///< number of its first row, from 0
  Predictions predictions;      ///< labels are 0 where they are not asked for
  TextList ids;                 ///< [rows] where there are ids
  TextList groups;              ///< [rows] where asked for
};

/// Asks a released model for its answers to rows, in their order. Tables and matrices come in
/// blocks, whose memory does not grow with their number; other data sets are one block.
class Scorer {
 public:
  /// model: outlives the scorer; model_name: for messages. Throws InputError where the data cannot
  /// be read, or are not what the model was trained on: columns, categories, classes, bounds,
  /// shape.
  Scorer(const ReleasedModel& model, const std::string& model_name, const ScoringRequest& request,
         const Backend& backend, Reporter& reporter);
  ~Scorer();
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  /// The next block; false behind the last. Throws InputError on rows that the schema does not
  /// allow.
  bool next(ScoredBlock& block);

  const std::string& data_name() const { return name_; }
  bool has_ids() const { return has_ids_; }

 private:
  struct Stream;

  void open_table(const DataRequest& data, const ScoringRequest& request);
  void open_matrix(const DataRequest& data, const ScoringRequest& request);
  void load(DataRequest data);
  /// Turns examples into what the network takes. Throws InputError where they do not fit it.
  void make_fit(Dataset& examples);

  const ReleasedModel& model_;
  std::string model_name_;
  const Backend& backend_;
  Reporter& reporter_;
  FeatureSettings features_;
  Predictor predictor_;
  std::string name_;
  bool has_ids_ = false;
  std::unique_ptr<Stream> stream_;  ///< of a table or a matrix; null: `whole_`
  std::optional<Dataset> whole_;    ///< until it is given
};

}  // namespace cudp
