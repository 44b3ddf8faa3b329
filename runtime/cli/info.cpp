#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "kernels/cpu.hpp"
#include "runtime/build_info.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/threads.hpp"

namespace cudp {
namespace {

constexpr const char* kExamples = R"(Examples:
  cudp info
  cudp info --json
)";

Answer describe() {
  const BuildInfo build = build_info();
  const std::string simd(simd_name(best_simd_level()));
  const int threads = available_cores();
  return {.json = {{"version", build.version},
                   {"commit", build.commit},
                   {"compiler", build.compiler},
                   {"backends", nlohmann::ordered_json::array({"cpu"})},
                   {"devices", nlohmann::ordered_json::array()},
                   {"simd", simd},
                   {"threads", threads}},
          .rows = {{"version", build.version},
                   {"commit", build.commit},
                   {"compiler", build.compiler},
                   {"backends", "cpu"},
                   {"SIMD level", simd},
                   {"threads", std::to_string(threads)}}};
}

}  // namespace

void add_info_command(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand("info", "Version, backends and devices");
  command->footer(kExamples);
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([&body, json] {
    body = [json] {
      print(describe(), *json);
      return 0;
    };
  });
}

}  // namespace cudp
