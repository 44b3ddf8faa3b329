#include "runtime/train/resume.hpp"

#include <filesystem>
#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "runtime/error.hpp"
#include "runtime/run/files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

privacy::Ledger read_ledger(const fs::path& path) {
  try {
    return privacy::Ledger::from_text(read_file(path), path.string());
  } catch (const std::invalid_argument& e) {
    throw Error(std::string(e.what()) + "; what was spent is not known");
  }
}

}  // namespace

privacy::Ledger resumed_ledger(const RunFolder& folder, const Checkpoint& c, bool same_key) {
  if (!fs::exists(folder.ledger())) {
    if (same_key) return c.ledger;
    throw Error(folder.ledger().string() +
                ": expected the ledger, found neither it nor the key; what was spent is not known");
  }
  privacy::Ledger ledger = read_ledger(folder.ledger());
  if (!ledger.continues(c.ledger))
    throw Error(folder.ledger().string() +
                ": expected the ledger of this run, found one that lacks what a checkpoint knows");
  return ledger;
}

void check_same_arithmetic(const RunFolder& folder, const Checkpoint& c, const Experiment& e) {
  if (std::filesystem::exists(folder.key()) && c.arithmetic != e.backend.arithmetic_name)
    throw InputError(
        fmt::format("{}: expected the arithmetic that the run began with, {}, found {}",
                    folder.root().string(), c.arithmetic, e.backend.arithmetic_name));
}

void check_same_data(const Checkpoint& c, const Experiment& e, const TrainingSize& size) {
  if (c.state.parameters.size() != e.network.parameter_count)
    throw InputError(fmt::format("{}: expected a model of {} parameters as in the run, found {}",
                                 e.config.model, c.state.parameters.size(),
                                 e.network.parameter_count));
  if (e.data.size_is_public && static_cast<double>(e.data.train.size()) != c.training_size)
    throw InputError(fmt::format("{}: expected {} training examples as in the run, found {}",
                                 e.data.name, c.training_size, e.data.train.size()));
  if (e.data.size_is_public != size.is_public())
    throw InputError(e.data.name + ": expected a size that is public or not as in the run");
}

MethodKind method_of_run(const RunFolder& folder) {
  TrainConfig config;
  if (fs::exists(folder.config())) apply_settings(read_settings(folder.config()), config);
  return config.method;
}

RunFolder resumed_folder(const Settings& flags) {
  TrainConfig asked;
  apply_settings(flags, asked);
  const auto same = [](const std::string& a, const std::string& b) {
    return fs::weakly_canonical(a) == fs::weakly_canonical(b);
  };
  if (!asked.out.empty() && !same(asked.out, asked.resume))
    throw InputError("--out: expected the folder of --resume or none, found '" + asked.out + "'");
  RunFolder folder{fs::path(asked.resume)};
  if (!fs::is_directory(folder.checkpoints()))
    throw InputError("--resume " + asked.resume + ": expected a run folder, found none");
  return folder;
}

}  // namespace cudp
