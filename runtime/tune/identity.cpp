#include "runtime/tune/identity.hpp"

#include <set>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/files.hpp"
#include "runtime/config/fine_tuning.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/data/published.hpp"
#include "runtime/data/text_options.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/settings/table_defaults.hpp"

namespace cudp {
namespace {

std::string digest_of(const std::string& text) {
  return sha256_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

/// Returns all settings of a candidate as one text, whose digest shows whether they have changed.
/// The data folder is left out if it has no effect.
std::string settings_text(TrainConfig config) {
  // By default the data folder is a folder of the working directory, which may be another one on a
  // resume. A table without a vocabulary or embedding does not use the data folder.
  const auto& text = config.of<TextOptions>();
  if (!is_named_dataset(config.dataset) && text.vocabulary.empty() && text.embedding.empty())
    config.data_dir.clear();
  std::string all = write_config(config, Audience::owner);
  for (const std::string& key : config.of<LeftOpen>().keys) all += "# open: " + key + "\n";
  return all;
}

}  // namespace

TuningIdentity identity_of(const std::vector<SweepCell>& candidate_cells, const DataFacts& facts) {
  std::string candidates, models;
  std::set<std::string> files;
  for (const SweepCell& cell : candidate_cells) {
    candidates += settings_text(cell.config) + "\n";
    if (cell.config.model.ends_with(".toml")) files.insert(cell.config.model);
    if (const std::string& init = cell.config.of<FineTuning>().init; !init.empty())
      files.insert(init);
  }
  for (const std::string& file : files) models += digest_of(read_user_file(file)) + "\n";
  return {{"candidates", digest_of(candidates)},
          {"models", digest_of(models)},
          {"schema", digest_of(facts.schema)},
          {"unit", fmt::format("{} of at most {} rows", facts.unit.empty() ? "row" : facts.unit,
                               facts.unit_rows)}};
}

}  // namespace cudp
