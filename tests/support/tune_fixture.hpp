#pragma once
// Tunings of a small table by the program, as a user makes them.
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {

using TunedFiles = std::map<std::string, std::string>;

class TuneCli : public testing::Test {
 protected:
  /// Returns a tuning of the table with four candidates, by a seed.
  Arguments tune(const Arguments& more, const std::string& seed = "5") const {
    return with(with({"tune", "--dataset", table_.table, "--schema", table_.schema},
                     args("--epsilon 2 --delta 1e-5 --batch 64 --steps 12 --device cpu --quiet "
                          "--lr 0.1,0.5 --clip 0.1,1 --runs 2 --most-runs 8")),
                with({"--seed", seed}, more));
  }
  /// Test rows that are public.
  Arguments scored() const { return {"--test-data", table_.test, "--test-data-is-public"}; }
  std::string out(const std::string& name = "tuned") const { return folder_ / name; }
  nlohmann::json json(const std::string& file, const std::string& name = "tuned") const {
    return nlohmann::json::parse(content_of(out(name) + "/" + file));
  }
  /// Changes `certificate`, writes it in place of the released one, and returns the exit code of
  /// cudp verify.
  template <class Change>
  int verify_changed(nlohmann::json certificate, const Change& change) const {
    change(certificate);
    write_text(out() + "/release/privacy.json", certificate.dump(2) + "\n");
    return run_cudp(folder_, {"verify", out()}).exit;
  }
  TunedFiles released(const std::string& name = "tuned") const {
    TunedFiles files;
    for (const auto& file : std::filesystem::directory_iterator(out(name) + "/release"))
      files[file.path().filename()] = content_of(file.path());
    return files;
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

}  // namespace cudp
