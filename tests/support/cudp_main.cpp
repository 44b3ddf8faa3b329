// cudp as tests start it hundreds of times: trainings of one test compute each bound once. All else
// is as in runtime/main.cpp.
#include "privacy/known_losses.hpp"
#include "runtime/cli/commands.hpp"
#include "tests/support/shared_bounds.hpp"

int main(int argc, char** argv) {
  const auto bounds = cudp::inherited_bounds();
  cudp::privacy::use_bound_store(bounds.get());
  return cudp::run_command_line(argc, argv);
}
