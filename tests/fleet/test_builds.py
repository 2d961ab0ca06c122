"""The copies of repositories on a worker: one that is used stays."""

from code_commit.fleet.builds import copy_path, remove_copy, used_copy


def used_once(place, name):
    bare = copy_path(place, name)
    with used_copy(bare):
        bare.mkdir()
    return bare


def test_a_copy_that_a_task_uses_stays(tmp_path):
    bare = used_once(tmp_path, "one")
    with used_copy(bare):
        remove_copy(bare)
        assert bare.exists()
    remove_copy(bare)
    assert not list(tmp_path.iterdir())
