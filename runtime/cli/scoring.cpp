#include "runtime/cli/scoring.hpp"

#include "runtime/cli/command_flags.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/standard_input.hpp"
#include "runtime/run/folder.hpp"

namespace cudp {

std::vector<Option> scoring_options() {
  return {
      shared_option(
          "dataset",
          "a table (- is the standard input), all rows of which are scored; a .npy or .npz "
          "file; or a folder of images or a built-in data set, whose test examples are scored"),
      shared_option("labels", ".npy file with the labels of a .npy file of examples"),
      shared_option("input-shape", "shape of one example of a .npy or .npz file: CxHxW or HxW"),
      shared_option("channels-last", "images of a .npy or .npz file are [N, H, W, C]"),
      shared_option("arrays", "names of the arrays in a .npz file, features first"),
      shared_option("data-dir", "folder with the files of a named data set"),
      shared_option(
          "schema",
          "a schema of this table, if its cells are written otherwise than in the training's; "
          "default: the model's own"),
      shared_option("malformed", "treatment of a cell that cannot be read"),
      shared_option("device", "auto, cpu or cuda; cuda:1 for another"),
      shared_option("feature-cache",
                    "folder in which computed features are kept; auto (~/.cache/cudp) or none"),
      shared_option(
          "embedding",
          "file of word vectors that the model was trained with; searched for in --data-dir if "
          "not given"),
      shared_option("threads", "CPU threads, 0 for every core"),
  };
}

ScoringRequest scoring_request(const TrainConfig& c) {
  ScoringRequest r;
  r.data.dataset = c.dataset;
  r.data.dir = c.data_dir;
  r.data.schema = c.schema;
  r.data.labels_path = c.labels;
  r.data.test_path = c.test_data;
  r.data.test_labels_path = c.test_labels;
  r.data.arrays = c.of<ArrayOptions>();
  r.data.accept_private_bounds = c.accept_private_bounds;
  r.data.malformed = c.malformed;
  r.feature_cache = c.feature_cache;
  r.threads = static_cast<int>(c.threads);
  return r;
}

std::string scoring_text(const std::string& dataset) {
  return "scoring " + (dataset == kStandardInput ? "standard input" : shown(dataset));
}

ReleasedModel model_for(const TrainConfig& c, const std::string& place) {
  check_not_of_tuning(place);
  return read_released_model(find_released_model(place),
                             {.file = c.of<TextOptions>().embedding, .dir = c.data_dir});
}

}  // namespace cudp
