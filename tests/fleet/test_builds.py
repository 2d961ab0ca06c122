"""The copies of repositories on a worker: which go when, and which stay."""

from code_commit.fleet.builds import copy_path, make_room, remove_copy, used_copy


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


def test_on_a_full_disk_the_least_used_copies_go_first(tmp_path):
    one, two, three = (used_once(tmp_path, name) for name in ("one", "two", "three"))
    with used_copy(one):
        make_room(tmp_path, lambda _: two.exists())
        assert {*tmp_path.iterdir()} == {one, three}
        make_room(tmp_path, lambda _: True)
    assert {*tmp_path.iterdir()} == {one}
