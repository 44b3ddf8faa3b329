#include "runtime/cli/commands.hpp"

int main(int argc, char** argv) { return cudp::run_command_line(argc, argv); }
