#include "plugin/nccl/conf_files.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "test/catch.h"
#include "test/folder.h"

using namespace gyre::plugin::nccl;
using Files = std::vector<std::string>;

namespace {

std::string in_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "(none)";
}

}  // namespace

TEST_CASE("nccl's file of settings is the one that is named, else the user's; then comes the system's") {
  CHECK(conf_files("/home/who") == Files{"/home/who/.nccl.conf", "/etc/nccl.conf"});
  CHECK(conf_files("") == Files{"/etc/nccl.conf"});
  ::setenv("NCCL_CONF_FILE", "", 1);
  CHECK(conf_files("/home/who") == Files{"/home/who/.nccl.conf", "/etc/nccl.conf"});
  ::setenv("NCCL_CONF_FILE", "mine.conf", 1);
  CHECK(conf_files("/home/who") == Files{"mine.conf", "/etc/nccl.conf"});
  ::unsetenv("NCCL_CONF_FILE");
}

TEST_CASE("nccl's settings come from the environment, then from the first file that has them") {
  const gyre::test::Folder folder;
  std::ofstream(folder / "first") << "# NCCL_TEST_COMMENT=1\n"
                                     "NCCL_TEST_GIVEN=file\n"
                                     "NCCL_TEST_EMPTY=file\n"
                                     "NCCL_TEST_FIRST==eth0,=x \n"
                                     "NCCL_TEST_TWICE=1\nNCCL_TEST_TWICE=2\n"
                                     " NCCL_TEST_BLANK=3\n"
                                     "=nameless\nNCCL_TEST_NOTHING\n\nNCCL_TEST_VOID=\n";
  std::ofstream(folder / "second") << "NCCL_TEST_FIRST=second\nNCCL_TEST_SECOND=4";  // with no end of the line
  ::setenv("NCCL_TEST_GIVEN", "environment", 1);
  ::setenv("NCCL_TEST_EMPTY", "", 1);
  set_by_files({folder / "there is none", folder.path(), folder / "first", folder / "second"});
  CHECK(in_environment("NCCL_TEST_COMMENT") == "(none)");
  CHECK(in_environment("NCCL_TEST_GIVEN") == "environment");
  CHECK(in_environment("NCCL_TEST_EMPTY").empty());
  CHECK(in_environment("NCCL_TEST_FIRST") == "=eth0,=x ");
  CHECK(in_environment("NCCL_TEST_TWICE") == "1");
  CHECK(in_environment("NCCL_TEST_BLANK") == "(none)");
  CHECK(in_environment(" NCCL_TEST_BLANK") == "3");
  CHECK(in_environment("NCCL_TEST_NOTHING") == "(none)");
  CHECK(in_environment("NCCL_TEST_VOID").empty());
  CHECK(in_environment("NCCL_TEST_SECOND") == "4");
}
